// Marks of each process, laid on as few levels as keep spans from covering each other; from the fourth level on they share.

import { TICKS } from "../lane.js"

export const MARK_LEVEL = 15 // pixels of each level

const MOST_LEVELS = 4

export class Marks {
  constructor(trace) {
    this.of = new Map()
    for (const mark of trace.data.marks ?? []) {
      const thread = trace.byId.get(mark.thread)
      if (!thread) continue
      const instant = mark.end_s === null || mark.end_s === undefined
      const from = Math.round(mark.start_s * TICKS)
      const to = instant ? from : Math.round(mark.end_s * TICKS)
      if (!this.of.has(thread.process)) this.of.set(thread.process, [])
      this.of.get(thread.process).push({ name: mark.name, thread, from, to, instant, level: 0 })
    }
    this.counts = new Map()
    for (const [process, marks] of this.of) this.counts.set(process, layOut(marks))
  }

  levels(process) {
    return this.counts.get(process) ?? 0
  }

  in(process) {
    return this.of.get(process) ?? []
  }

  // The mark at a place; instants may be missed by `reach` ticks.
  at(process, time, level, reach) {
    let best = null
    for (const mark of this.in(process)) {
      if (mark.level !== level || mark.from - reach > time || mark.to + reach < time) continue
      if (!best || mark.to - mark.from < best.to - best.from) best = mark
    }
    return best
  }
}

function layOut(marks) {
  marks.sort((a, b) => a.from - b.from || b.to - a.to)
  const free = [] // when each level is free again
  for (const mark of marks) {
    let level = free.findIndex((time) => time <= mark.from)
    if (level < 0) level = Math.min(free.length, MOST_LEVELS - 1)
    mark.level = level
    free[level] = Math.max(free[level] ?? 0, mark.to + 1)
  }
  return free.length
}
