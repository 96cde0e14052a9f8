// The lines that held the GVL: blame by the innermost frame of each stack that has a line where one can change something;
// methods that are Ruby's own, in C or in Ruby, and were running inside of it are named beside it. The flame graph says how
// it came there, and work what was mostly in the line.

import { byId, element } from "../dom.js"
import { count, duration, percent } from "../format.js"
import { table } from "./table.js"

const MOST_INSIDE = 3
const MOSTLY = 0.5, NEARLY_ALL = 0.9

// What Ruby calls the files of its own Ruby: <internal:numeric>.
const OWN = /^</

export function showLines(trace) {
  const { stacks = [], frames = [] } = trace.data.blame ?? {}
  const depthOf = (stack) => Math.max(stack.findIndex((index) => frames[index]?.line > 0 && !OWN.test(frames[index].file)), 0)
  const keyOf = (frame) => `${frame.method}\0${frame.file}\0${frame.line}`
  const rows = new Map()
  let total = 0
  for (const { frames: stack, weight_s, samples } of stacks) {
    total += weight_s
    const depth = depthOf(stack)
    const frame = frames[stack[depth]]
    if (!frame) continue
    const row = rows.get(keyOf(frame)) ?? { frame, weight: 0, samples: 0, inside: new Map(), work: new Map() }
    row.weight += weight_s
    row.samples += samples ?? 1
    if (depth > 0) add(row.inside, frames[stack[0]]?.method, weight_s)
    rows.set(keyOf(frame), row)
  }
  if (!rows.size) return
  for (const { name, blamed = [] } of trace.data.work ?? []) {
    for (const { frames: stack, s } of blamed) {
      const frame = frames[stack[depthOf(stack)]]
      if (frame) add(rows.get(keyOf(frame))?.work ?? new Map(), name, s)
    }
  }
  byId("lines").append(table({
    name: "Lines that held the GVL", rows: [...rows.values()], sortBy: "Wait caused",
    columns: [
      { title: "Method", text: true, class: "code", value: ({ frame }) => frame.method ?? "", show: (method, row) => element("span", {}, method, inside(row)) },
      { title: "Line", text: true, class: "path", value: ({ frame }) => (frame.line ? `${frame.file}:${frame.line}` : (frame.file ?? "")) },
      ...([...rows.values()].some(workOf) ? [AT] : []),
      { title: "Wait caused", value: (row) => row.weight, show: (value) => duration(value), help: "waiting threads × time, while this line held the GVL" },
      { title: "Of all blame", value: (row) => (total ? row.weight / total : 0), show: (value) => percent(value), share: (row) => row.weight / total, bar: "blame" },
      { title: "Samples", value: (row) => row.samples, show: (value) => count(value) },
    ],
  }))
}

const add = (sums, key, amount) => sums.set(key, (sums.get(key) ?? 0) + amount)

const workOf = (row) => [...row.work].find(([, seconds]) => seconds >= MOSTLY * row.weight)

const AT = { title: "At", text: true, class: "name", help: "the work that was in it", value: (row) => workOf(row)?.[0] ?? "",
  show: (name, row) => element("span", {}, workOf(row)?.[1] < NEARLY_ALL * row.weight && element("span", { class: "faint" }, "mostly "), name) }

function inside(row) {
  const names = [...row.inside].sort((a, b) => b[1] - a[1]).map(([method]) => method)
  if (!names.length) return null
  return element("span", { class: "faint" }, ` in ${names.slice(0, MOST_INSIDE).join(", ")}${names.length > MOST_INSIDE ? ", …" : ""}`)
}
