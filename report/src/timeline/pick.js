// What is at a place of the timeline: a segment where it is wide enough to be meant, else all that shares its pixel.

import { ABSENT, GC, READY, STATES } from "../lane.js"
import { MARK_LEVEL } from "./marks.js"
import { rowAt } from "./rows.js"

const shares = new Float32Array(STATES)

export function pick({ trace, marks, rows, view, width }, x, y) {
  const row = rowAt(rows, y)
  if (!row) return null
  const pixel = view.span / width
  const time = view.from + x * pixel
  if (row.kind === "marks") {
    const mark = marks.at(row.process.id, time, Math.floor((y - row.y - 2) / MARK_LEVEL), 5 * pixel)
    return mark && { kind: "mark", row, mark, thread: mark.thread, from: mark.from, to: mark.to }
  }
  if (row.kind === "gc") return pickGc(trace, row, time, pixel)
  if (row.kind !== "thread") return null
  const lane = trace.lane(row.thread)
  const index = lane.at(time)
  if (index >= 0 && lane.ends[index] - lane.startOf(index) >= pixel * 1.5) return segment(trace, row, index)
  return column(trace, row, time - pixel / 2, time + pixel / 2)
}

// One segment of a thread, or nil where it was not there.
export function segment(trace, row, index) {
  const lane = trace.lane(row.thread)
  if (index < 0 || lane.states[index] === ABSENT) return null
  return { kind: "segment", row, thread: row.thread, index, state: lane.states[index], from: lane.startOf(index), to: lane.ends[index] }
}

function column(trace, row, from, to) {
  const lane = trace.lane(row.thread)
  lane.shares(from, to - from, 1, shares)
  if (shares.every((share) => share === 0)) return null
  const census = lane.census(READY, from, to)
  const longest = census.longest < 0 ? null : segment(trace, row, census.longest)
  return { kind: "column", row, thread: row.thread, from, to, shares: [...shares], waits: census, longest, index: census.longest }
}

function pickGc(trace, row, time, pixel) {
  const lane = trace.gcLane(row.process.id)
  const { longest, count } = lane.census(GC, time - pixel, time + pixel)
  return longest < 0 ? null : { kind: "gc", row, count, from: lane.startOf(longest), to: lane.ends[longest] }
}
