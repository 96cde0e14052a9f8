// The lines that held the GVL: blame by the top frame of each stack. The flame graph says how they were reached.

import { byId } from "../dom.js"
import { count, duration, percent } from "../format.js"
import { table } from "./table.js"

export function showLines(trace) {
  const { stacks = [], frames = [] } = trace.data.blame ?? {}
  const rows = new Map()
  let total = 0
  for (const { frames: stack, weight_s, samples } of stacks) {
    const frame = frames[stack[0]]
    total += weight_s
    if (!frame) continue
    const key = `${frame.method}\0${frame.file}\0${frame.line}`
    const row = rows.get(key) ?? { frame, weight: 0, samples: 0 }
    row.weight += weight_s
    row.samples += samples ?? 1
    rows.set(key, row)
  }
  if (!rows.size) return
  byId("lines").append(table({
    name: "Lines that held the GVL", rows: [...rows.values()], sortBy: "Wait caused",
    columns: [
      { title: "Method", text: true, class: "code", value: ({ frame }) => frame.method ?? "" },
      { title: "Line", text: true, class: "path", value: ({ frame }) => (frame.line ? `${frame.file}:${frame.line}` : (frame.file ?? "")) },
      { title: "Wait caused", value: (row) => row.weight, show: (value) => duration(value), help: "waiting threads × time, while this line held the GVL" },
      { title: "Of all blame", value: (row) => (total ? row.weight / total : 0), show: (value) => percent(value), share: (row) => row.weight / total, bar: "blame" },
      { title: "Samples", value: (row) => row.samples, show: (value) => count(value) },
    ],
  }))
}
