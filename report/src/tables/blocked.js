// Where work was blocked: the line of the program's own that each stack was in, and the call in it that blocked.

import { element } from "../dom.js"
import { duration, percent } from "../format.js"
import { leafOf, lineOf, ownOf } from "../stack.js"
import { table } from "./table.js"

// Nothing where nothing was.
export function blockedTable(trace) {
  const frames = trace.data.blame?.frames ?? []
  const rows = (trace.data.work ?? []).flatMap((work) => rowsOf(work, frames))
  if (!rows.length) return null
  return table({
    name: "Where work was blocked", rows, sortBy: "Blocked",
    columns: [
      { title: "Work", text: true, class: "name", value: ({ work }) => work.name, show: (name) => name || element("span", { class: "faint" }, "no name") },
      { title: "Blocked in", text: true, class: "code", value: ({ frame }) => frame.method ?? "",
        show: (method, { call }) => element("span", {}, method, call && element("span", { class: "faint" }, ` at ${call}`)) },
      { title: "Line", text: true, class: "path", value: ({ frame }) => lineOf(frame) },
      { title: "Blocked", value: (row) => row.seconds, show: (value) => duration(value), help: "for 10 ms and longer at a time" },
      { title: "Of its time without the GVL", value: share, show: (value) => percent(value), share, bar: "suspended" },
    ],
  })
}

const share = ({ work, seconds }) => Math.min(seconds / Math.max(work.total_s - work.running_s - work.ready_s, seconds), 1)

function rowsOf(work, frames) {
  const rows = new Map()
  for (const { frames: stack, s } of work.blocked ?? []) { // the longest first, whose call is told
    const own = ownOf(stack, frames)
    const frame = frames[own]
    if (!frame) continue
    const row = rows.get(own) ?? { work, frame, seconds: 0, call: own === stack[0] ? null : frames[leafOf(stack, own, frames)]?.method }
    row.seconds += s
    rows.set(own, row)
  }
  return [...rows.values()]
}
