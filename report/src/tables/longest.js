// The longest waits, each leading to its place in the timeline.

import { byId, element } from "../dom.js"
import { duration, instant, percent } from "../format.js"
import { TICKS } from "../lane.js"
import { table, threadLink } from "./table.js"

const MOST = 10

export function showLongest(trace, timeline) {
  const rows = trace.longestWaits(MOST).map(({ thread, index, ticks }) => {
    const to = trace.lane(thread).ends[index]
    return { thread, index, s: ticks / TICKS, at: (to - ticks) / TICKS, holder: trace.holders(thread, to - ticks, to)[0] }
  })
  if (!rows.length) {
    byId("longest").append(element("p", { class: "faint" }, "There is none to show."))
    return
  }
  byId("longest").append(table({
    name: "Longest waits", rows, sortBy: "Waited",
    columns: [
      { title: "Waited", value: (row) => row.s, show: (value) => duration(value) },
      { title: "Thread", text: true, class: "name", value: (row) => trace.nameOf(row.thread), show: (_, row) => threadLink(trace, timeline, row.thread.id, row.index) },
      { title: "At", value: (row) => row.at, show: (value) => instant(value, 1e-3) },
      { title: "Mostly behind", text: true, class: "name", value: (row) => (row.holder ? trace.nameOf(row.holder.thread) : "nobody"),
        show: (name, row) => (row.holder ? `${name}, ${percent(row.holder.ticks / TICKS / row.s)}` : "nobody (GVL free)") },
    ],
  }))
}
