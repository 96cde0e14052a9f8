// What is drawn below what: for each process its name (where there are several), its garbage collector, its marks, and its
// threads in the order asked for, without those that the search passes over.

import { GC } from "../lane.js"
import { MARK_LEVEL } from "./marks.js"

const HEIGHT = { process: 26, gc: 20, thread: 24 }

const ORDERS = {
  waiting: (a, b) => b.ready_s - a.ready_s || a.number - b.number,
  running: (a, b) => b.running_s - a.running_s || a.number - b.number,
  created: (a, b) => a.number - b.number,
}

export function rowsOf(trace, marks, { order, search }) {
  const rows = []
  let y = 0
  const add = (row) => {
    rows.push({ ...row, y })
    y += row.height
  }
  const wanted = search.trim().toLowerCase()
  for (const process of trace.processes) {
    const threads = (trace.inProcess.get(process.id) ?? []).filter((thread) => matches(trace, thread, wanted)).sort(ORDERS[order])
    if (wanted && !threads.length) continue
    if (trace.processes.length > 1) add({ kind: "process", process, height: HEIGHT.process })
    if (trace.gcLane(process.id).seek(GC, 0) >= 0) add({ kind: "gc", process, height: HEIGHT.gc })
    const levels = marks.levels(process.id)
    if (levels) add({ kind: "marks", process, height: levels * MARK_LEVEL + 5 })
    for (const thread of threads) add({ kind: "thread", process, thread, height: HEIGHT.thread })
  }
  return { rows, height: y, threads: rows.filter((row) => row.kind === "thread") }
}

function matches(trace, thread, wanted) {
  return !wanted || `${trace.nameOf(thread)} ${thread.site ?? ""}`.toLowerCase().includes(wanted)
}

export const rowAt = (rows, y) => rows.find((row) => y >= row.y && y < row.y + row.height)
