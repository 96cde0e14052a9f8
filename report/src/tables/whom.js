// Who waited for whom: each thread's waiting, split among those that held the GVL meanwhile.

import { byId, element } from "../dom.js"
import { duration, percent } from "../format.js"
import { table, threadLink } from "./table.js"

// Too many to be told apart.
const OTHERS = "other threads"

export function showWhom(trace, timeline) {
  const rows = trace.threads.flatMap((thread) => (thread.waited_for ?? []).filter(({ s }) => s > 0)
    .map(({ thread: holder, others, s }) => ({ thread, holder, others, s, share: thread.ready_s ? s / thread.ready_s : 0 })))
  if (!rows.length) {
    byId("whom").append(element("p", { class: "faint" }, "Nobody waited for anybody."))
    return
  }
  byId("whom").append(table({
    name: "Who waited for whom", rows, sortBy: "For",
    columns: [
      { title: "Waiter", text: true, class: "name", value: (row) => trace.nameOf(row.thread), show: (_, row) => threadLink(trace, timeline, row.thread.id) },
      { title: "Holder", text: true, class: "name", value: (row) => (row.others ? OTHERS : trace.nameOfId(row.holder)),
        show: (name, row) => (row.others ? element("span", { class: "faint" }, name) : threadLink(trace, timeline, row.holder)) },
      { title: "For", value: (row) => row.s, show: (value) => duration(value) },
      { title: "Of the waiter’s waiting", value: (row) => row.share, show: (value) => percent(value), share: (row) => row.share },
    ],
  }))
}
