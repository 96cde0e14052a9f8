// The longest waits, each leading to its place in the timeline.

import { byId, element } from "../dom.js"
import { duration, instant, percent } from "../format.js"
import { TICKS } from "../lane.js"
import { NOBODY, table, threadLink } from "./table.js"

const MOST = 10

// Whoever held the GVL for most of a wait; without a holder it was free.
function behind(holders, length) {
  const free = holders.reduce((left, { ticks }) => left - ticks, length)
  const [most] = holders
  return most && most.ticks >= free ? { holder: most.thread, ticks: most.ticks } : { holder: null, ticks: free }
}

export function showLongest(trace, timeline) {
  const rows = trace.longestWaits(MOST).map(({ thread, index, ticks }) => {
    const to = trace.lane(thread).ends[index]
    return { thread, index, s: ticks / TICKS, at: (to - ticks) / TICKS, ...behind(trace.holders(thread, to - ticks, to), ticks) }
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
      { title: "Mostly behind", text: true, class: "name", value: (row) => (row.holder ? trace.nameOf(row.holder) : "nobody"),
        show: (name, row) => `${row.holder ? name : NOBODY}, ${percent(row.ticks / TICKS / row.s)}` },
    ],
  }))
}
