// One thread's (or one process's garbage collector's) states over time, decoded once into typed arrays. Times are ticks of
// 100 ns, kept as doubles, which hold them exactly for 28 years. Every so many segments the time spent in each state so
// far is noted, so that the share of each state between any two times costs a binary search and a few steps, however many
// segments lie between: what makes a pixel that stands for 10,000 segments as cheap as one that stands for 10.

export const TICKS = 1e7 // a second
export const RUNNING = 0
export const READY = 1
export const SUSPENDED = 2
export const ABSENT = 3

export const GC = 1 // in the lane of a garbage collector

const STRIDE = 32
export const STATES = 3 // counted ones; what is absent is the rest

export class Lane {
  constructor(start, ends, states) {
    this.start = start
    this.ends = ends
    this.states = states
    this.length = ends.length
    this.end = this.length ? ends[this.length - 1] : start
    this.scratch = [new Float64Array(STATES), new Float64Array(STATES)]
    this.noteSums()
  }

  // Segments are LEB128 varints of duration << 2 | state. A lane that ends too early is as long as it is.
  static decode(bytes, { offset, length, segments, start_s }) {
    const last = Math.min(offset + length, bytes.length)
    const ends = new Float64Array(segments)
    const states = new Uint8Array(segments)
    const start = Math.round(start_s * TICKS)
    let time = start
    let index = 0
    let at = offset
    while (index < segments && at < last) {
      let byte = bytes[at++]
      const state = byte & 3
      let ticks = (byte & 127) >> 2
      let factor = 32
      while (byte > 127 && at < last) {
        byte = bytes[at++]
        ticks += (byte & 127) * factor
        factor *= 128
      }
      time += ticks
      ends[index] = time
      states[index++] = state
    }
    return new Lane(start, ends.subarray(0, index), states.subarray(0, index))
  }

  noteSums() {
    this.sums = new Float64Array((Math.floor(this.length / STRIDE) + 1) * STATES)
    const sum = new Float64Array(STATES + 1)
    let time = this.start
    for (let index = 0; index < this.length; index++) {
      if (index % STRIDE === 0) this.sums.set(sum.subarray(0, STATES), (index / STRIDE) * STATES)
      sum[this.states[index]] += this.ends[index] - time
      time = this.ends[index]
    }
    if (this.length % STRIDE === 0) this.sums.set(sum.subarray(0, STATES), (this.length / STRIDE) * STATES)
  }

  startOf(index) {
    return index === 0 ? this.start : this.ends[index - 1]
  }

  // The first segment that ends after this time, looked for from `low` on; the number of segments if there is none.
  find(time, low = 0) {
    let step = 1
    let high = low
    while (high < this.length && this.ends[high] <= time) {
      low = high + 1
      high += step
      step *= 2
    }
    high = Math.min(high, this.length)
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.ends[middle] <= time) low = middle + 1
      else high = middle
    }
    return low
  }

  // The segment at this time, or -1.
  at(time) {
    if (time < this.start || time >= this.end) return -1
    return this.find(time)
  }

  // Time spent in each state before `time`, which segment `index` contains or which lies outside the lane.
  sumsBefore(time, index, into) {
    let at = index - (index % STRIDE)
    const note = (at / STRIDE) * STATES
    for (let state = 0; state < STATES; state++) into[state] = this.sums[note + state]
    let from = this.startOf(at)
    for (; at < index; at++) {
      if (this.states[at] !== ABSENT) into[this.states[at]] += this.ends[at] - from
      from = this.ends[at]
    }
    if (index < this.length && time > from && this.states[index] !== ABSENT) into[this.states[index]] += time - from
    return into
  }

  // Ticks spent in one state between two times.
  timeIn(state, from, to) {
    if (!this.length || to <= this.start || from >= this.end) return 0
    const [before, after] = this.scratch
    const first = this.find(from)
    this.sumsBefore(from, first, before)
    this.sumsBefore(to, this.find(to, first), after)
    return after[state] - before[state]
  }

  // The share of each state in `columns` stretches of `step` ticks from `from` on; three numbers for each stretch.
  shares(from, step, columns, into) {
    into.fill(0, 0, columns * STATES)
    if (!this.length) return
    const first = Math.max(Math.floor((this.start - from) / step), 0)
    const last = Math.min(Math.ceil((this.end - from) / step), columns)
    let index = this.find(from + first * step)
    for (let column = first; column < last; column++) {
      const begin = from + column * step
      const end = begin + step
      const next = this.find(end, index)
      if (next - index <= STRIDE) this.addShares(begin, end, index, next, into, column * STATES)
      else this.subtractSums(begin, end, index, next, into, column * STATES)
      index = next
    }
  }

  // Few segments: their parts are added up, which stays exact where a stretch is a tiny part of a long trace.
  addShares(begin, end, index, next, into, at) {
    let from = Math.max(begin, this.startOf(index))
    for (let segment = index; segment <= next && segment < this.length && from < end; segment++) {
      const to = Math.min(this.ends[segment], end)
      if (this.states[segment] !== ABSENT && to > from) into[at + this.states[segment]] += (to - from) / (end - begin)
      from = to
    }
  }

  subtractSums(begin, end, index, next, into, at) {
    const [before, after] = this.scratch
    this.sumsBefore(begin, index, before)
    this.sumsBefore(end, next, after)
    for (let state = 0; state < STATES; state++) into[at + state] = (after[state] - before[state]) / (end - begin)
  }

  // The next segment of a state from `index` on, in either direction, or -1.
  seek(state, index, direction = 1) {
    for (let at = index; at >= 0 && at < this.length; at += direction) if (this.states[at] === state) return at
    return -1
  }

  // How many segments of a state touch a stretch, and the longest of them. Counts no further than `bound` segments.
  census(state, from, to, bound = 200_000) {
    let waits = 0
    let longest = -1
    let most = -1
    const first = this.find(from)
    let at = first
    for (; at < this.length && this.startOf(at) < to && at - first < bound; at++) {
      if (this.states[at] !== state) continue
      waits++
      const ticks = this.ends[at] - this.startOf(at)
      if (ticks > most) [most, longest] = [ticks, at]
    }
    return { count: waits, longest, bounded: at - first >= bound }
  }
}
