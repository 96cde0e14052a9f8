// Of each kind of work the single piece that waited longest for the GVL, which leads to its longest wait in the timeline.

import { element } from "../dom.js"
import { duration, instant, percent } from "../format.js"
import { READY, TICKS } from "../lane.js"
import { lineOf, ownOf } from "../stack.js"
import { table } from "./table.js"

// Of a wait, a line that had less doesn't explain it; as Report::Rows has it.
const TELLING = 0.25

// Nothing where none waited.
export function waitedTable(trace, timeline) {
  const rows = (trace.data.work ?? []).filter(({ longest }) => longest)
    .map(({ name, longest }) => ({ name, ...longest, ...mostlyBehind(longest, trace.data.blame?.frames ?? []) }))
  if (!rows.length) return null
  return table({
    name: "Work that waited longest", rows, sortBy: "Waited",
    columns: [
      { title: "Waited", value: (row) => row.ready_s, show: (value) => duration(value), share: (row) => row.ready_s / row.total_s, bar: "ready" },
      { title: "Took", value: (row) => row.total_s, show: (value) => duration(value) },
      { title: "Work", text: true, class: "name", value: (row) => row.name, show: (name, row) => link(trace, timeline, row) },
      { title: "At", value: (row) => row.start_s, show: (value) => instant(value, 1e-3) },
      { title: "Mostly behind", text: true, class: "code", value: ({ frame }) => frame?.method ?? "",
        show: (method, { frame, share }) => frame && element("span", {}, method, element("span", { class: "faint" }, ` ${lineOf(frame)}, ${percent(share)}`)) },
    ],
  })
}

// The line that holders were seen in for most of its wait.
function mostlyBehind({ behind = [], ready_s: ready }, frames) {
  const seconds = new Map()
  for (const { frames: stack, s } of behind) {
    const own = ownOf(stack, frames)
    seconds.set(own, (seconds.get(own) ?? 0) + s)
  }
  const [[own, most] = []] = [...seconds].sort((a, b) => b[1] - a[1])
  return most >= TELLING * ready ? { frame: frames[own], share: most / ready } : {}
}

function link(trace, timeline, { name, thread: id, start_s: start, total_s: total }) {
  const thread = trace.byId.get(id)
  const show = () => {
    const { longest } = trace.lane(thread).census(READY, start * TICKS, (start + total) * TICKS)
    timeline.show(thread, longest < 0 ? undefined : longest)
  }
  return element("button", { type: "button", class: "link", title: trace.nameOf(thread), onclick: show }, name || "no name")
}
