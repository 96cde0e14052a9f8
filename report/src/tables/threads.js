// All threads in figures, and where nothing is marked where they were blocked.

import { byId, element } from "../dom.js"
import { count, duration, percent } from "../format.js"
import { blockedThreads } from "./blocked.js"
import { table, threadLink } from "./table.js"

const alive = (thread) => thread.running_s + thread.ready_s + thread.suspended_s
const share = (thread, seconds) => (alive(thread) ? seconds / alive(thread) : 0)
const time = (title, value, help) => ({ title, value, help, show: (seconds) => duration(seconds) })

export function showThreads(trace, timeline) {
  byId("threads").append(table({
    name: "Threads", rows: trace.threads, sortBy: "Waiting",
    columns: [
      { title: "Thread", text: true, class: "name", value: (row) => trace.nameOf(row), show: (_, row) => threadLink(trace, timeline, row.id) },
      time("Running", (row) => row.running_s),
      { ...time("Waiting", (row) => row.ready_s), show: (seconds, row) => `${duration(seconds)} · ${percent(share(row, seconds))}`,
        share: (row) => share(row, row.ready_s) },
      time("Suspended", (row) => row.suspended_s),
      { title: "Waits", value: (row) => row.wait?.count, show: (number) => count(number) },
      time("p50", (row) => row.wait?.p50_s, "half of this thread’s waits were shorter"),
      time("p99", (row) => row.wait?.p99_s, "99 of 100 of this thread’s waits were shorter"),
      time("Longest", (row) => row.wait?.max_s, "this thread’s longest wait"),
      { title: "Preempted", value: (row) => row.switches?.preempted, show: (number) => count(number) },
      { title: "Voluntary", value: (row) => row.switches?.voluntary, show: (number) => count(number), help: "blocked by itself" },
      { title: "Created at", text: true, class: "path", value: (row) => row.site ?? "", show: (site) => site || "–" },
    ],
  }))
  const blocked = blockedThreads(trace)
  if (blocked) byId("threads").append(element("h3", {}, "Where they were blocked"), blocked)
}
