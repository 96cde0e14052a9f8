// The longest waits, each leading to its place in the timeline.

import { byId, element } from "../dom.js"
import { duration, instant, percent, plural } from "../format.js"
import { TICKS } from "../lane.js"
import { NOBODY, table, threadLink } from "./table.js"

const MOST = 10

// Whoever held the GVL for most of a wait; without a holder it was free. Many that held it a little each are told of together.
function behind(trace, holders, length) {
  const held = holders.reduce((sum, { ticks }) => sum + ticks, 0)
  const [most] = holders
  if (held < length - held) return { holder: "nobody", shown: NOBODY, ticks: length - held }
  if (most.ticks >= length - held) return { holder: trace.nameOf(most.thread), ticks: most.ticks }
  return { holder: plural(holders.length, "thread"), shown: `${plural(holders.length, "thread")} in turn`, ticks: held }
}

export function showLongest(trace, timeline) {
  const rows = trace.longestWaits(MOST).map(({ thread, index, ticks }) => {
    const to = trace.lane(thread).ends[index]
    return { thread, index, s: ticks / TICKS, at: (to - ticks) / TICKS, ...behind(trace, trace.holders(thread, to - ticks, to), ticks) }
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
      { title: "Mostly behind", text: true, class: "name", value: (row) => row.holder,
        show: (name, row) => `${row.shown ?? name}, ${percent(row.ticks / TICKS / row.s)}` },
    ],
  }))
}
