// Marks by name: how often, how long; the longest of each can be gone to.

import { byId, element } from "../dom.js"
import { count, duration } from "../format.js"
import { TICKS } from "../lane.js"
import { table } from "./table.js"

export function showMarks(trace, timeline) {
  const names = new Map()
  for (const mark of trace.data.marks ?? []) {
    const s = mark.end_s === null || mark.end_s === undefined ? 0 : mark.end_s - mark.start_s
    const row = names.get(mark.name) ?? { name: mark.name, times: 0, total: 0, longest: -1 }
    if (s > row.longest) Object.assign(row, { longest: s, mark })
    row.times += 1
    row.total += s
    names.set(mark.name, row)
  }
  if (!names.size) return
  const go = ({ mark, longest }) => {
    byId("timeline").scrollIntoView({ block: "start" })
    timeline.view.reveal(mark.start_s * TICKS, (mark.start_s + Math.max(longest, 1e-3)) * TICKS)
  }
  byId("marks").hidden = false
  byId("marks").append(table({
    name: "Marks", rows: [...names.values()], sortBy: "In all",
    columns: [
      { title: "Mark", text: true, class: "name", value: (row) => row.name,
        show: (name, row) => element("button", { type: "button", class: "link", title: "to the longest of them", onclick: () => go(row) }, name) },
      { title: "Times", value: (row) => row.times, show: (value) => count(value) },
      { title: "In all", value: (row) => row.total, show: (value) => (value ? duration(value) : "–") },
      { title: "Longest", value: (row) => row.longest, show: (value) => (value ? duration(value) : "–") },
    ],
  }))
}
