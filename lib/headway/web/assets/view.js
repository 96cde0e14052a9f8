// What was answered, kept for a minute or two, and what it says of a stretch of time. Answers count from when Headway was started,
// so a stretch is the difference of two.

const COLUMNS = 240
const KEPT = 61
const STATES = ["running", "ready", "suspended"]

export class History {
  constructor() {
    this.byPid = new Map()
  }

  add(processes) {
    const living = new Set(processes.map(({ pid }) => pid))
    for (const pid of [...this.byPid.keys()]) if (!living.has(pid)) this.byPid.delete(pid)
    for (const process of processes) if (process.process) this.addProcess(process)
  }

  addProcess(process) {
    let known = this.byPid.get(process.pid)
    const last = known?.answers.at(-1)
    if (last && process.wall === last.wall) return // another worker's answer, or the same again
    if (last && process.wall < last.wall) {
      if (last.wall - process.wall < 2) return // an older one
      known = undefined // started again
    }
    if (!known) this.byPid.set(process.pid, (known = { answers: [], lanes: new Map() }))
    known.answers.push(process)
    if (known.answers.length > KEPT) known.answers.shift()
    this.addColumns(known.lanes, process.threads, last ? process.wall - last.wall : process.wall)
  }

  addColumns(lanes, threads, seconds) {
    const living = new Set(threads.map(({ number }) => number))
    for (const number of [...lanes.keys()]) if (!living.has(number)) lanes.delete(number)
    for (const thread of threads) {
      let lane = lanes.get(thread.number)
      if (!lane) lanes.set(thread.number, (lane = { columns: [], last: null }))
      const times = STATES.map((state) => Math.max(thread[state] - (lane.last?.[state] ?? 0), 0))
      const total = lane.last ? seconds : times[0] + times[1] + times[2]
      lane.last = thread
      lane.shares = times.map((time) => (total > 0 ? Math.min(time / total, 1) : 0))
      lane.columns.push(lane.shares)
      if (lane.columns.length > COLUMNS) lane.columns.shift()
    }
  }

  lane(pid, number) {
    return this.byPid.get(pid)?.lanes.get(number)
  }

  // The last so many answers' stretch of each process: its end, and its beginning, which may be nothing: Headway's start.
  stretches(processes, answers) {
    return processes.map(({ pid }) => this.byPid.get(pid)?.answers).filter((known) => known?.length)
      .map((known) => ({ now: known.at(-1), before: known.length > 1 ? known[Math.max(known.length - answers - 1, 0)] : null }))
  }

  // Sums of all processes over the last answers; seconds: the longest stretch; whole: since Headway's start.
  rates(processes, answers) {
    const sums = { seconds: 0, running: 0, ready: 0, suspended: 0, voluntary: 0, preempted: 0, whole: false }
    for (const { now, before } of this.stretches(processes, answers)) {
      const seconds = now.wall - (before?.wall ?? 0)
      if (seconds <= 0) continue
      const rate = (value) => Math.max(value(now.process) - (before ? value(before.process) : 0), 0) / seconds
      sums.seconds = Math.max(sums.seconds, seconds)
      if (!before) sums.whole = true
      for (const state of STATES) sums[state] += rate((process) => process[state])
      for (const kind of ["voluntary", "preempted"]) sums[kind] += rate((process) => process.switches[kind])
    }
    return sums
  }

  // Requests and jobs that ended in the last answers: kind -> how many a second, and the share of their time that they waited for the GVL.
  works(processes, answers) {
    const works = new Map()
    for (const { now, before } of this.stretches(processes, answers)) {
      for (const [kind, sums] of Object.entries(now.work ?? {})) {
        const gain = (value) => Math.max(value(sums) - (before?.work?.[kind] ? value(before.work[kind]) : 0), 0)
        const of = works.get(kind) ?? { perSecond: 0, ready: 0, time: 0 }
        of.perSecond += gain(({ wait }) => wait.count) / (now.wall - (before?.wall ?? 0))
        of.ready += gain(({ ready }) => ready)
        of.time += gain(({ running, ready, suspended }) => running + ready + suspended)
        works.set(kind, of)
      }
    }
    return [...works].filter(([, { time }]) => time > 0).map(([kind, { perSecond, ready, time }]) => ({ kind, perSecond, waited: ready / time }))
  }

  // The waits of the last answers, as a report's histogram and percentiles.
  waits(processes, answers) {
    const counts = new Map()
    let seconds = 0
    for (const { now, before } of this.stretches(processes, answers)) {
      seconds = Math.max(seconds, now.wall - (before?.wall ?? 0))
      const add = (buckets, sign) => {
        for (const { from_s, to_s, count } of buckets ?? []) {
          const bucket = counts.get(from_s) ?? { from_s, to_s, count: 0 }
          bucket.count += sign * count
          counts.set(from_s, bucket)
        }
      }
      add(now.process.wait_histogram, 1)
      add(before?.process.wait_histogram, -1)
    }
    const buckets = [...counts.values()].filter(({ count }) => count > 0).sort((a, b) => a.from_s - b.from_s)
    return { buckets, wait: percentiles(buckets), seconds }
  }
}

// As exact as the buckets are: in between, values are taken to be spread evenly.
function percentiles(buckets) {
  const total = buckets.reduce((sum, { count }) => sum + count, 0)
  const at = (share) => {
    let rank = share * total
    for (const { from_s, to_s, count } of buckets) {
      if (rank <= count) return from_s + (to_s - from_s) * (rank / count)
      rank -= count
    }
    return buckets.at(-1)?.to_s
  }
  return { count: total, p50_s: at(0.5), p90_s: at(0.9), p99_s: at(0.99), p999_s: at(0.999), max_s: buckets.at(-1)?.to_s }
}
