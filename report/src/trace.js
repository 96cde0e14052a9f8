// The data the page was filled with, and what the parts of the page ask of it.

import { fromBase64 } from "./bytes.js"
import { Lane, RUNNING, READY, GC, TICKS } from "./lane.js"

// What a thread without a name is called: where it was created. Of such a path, what tells files apart.
const SITE = /^\/.*\/([^/]+\/[^/]+:\d+)$/

const NO_LANE = new Lane(0, new Float64Array(0), new Uint8Array(0))

const bareNameOf = (thread) => thread.name?.replace(SITE, "$1") || `thread ${thread.number}`

const taken = (thread) => `${thread.process} ${thread.name}`

export class Trace {
  // Nil where the page was opened without data.
  static read() {
    const data = JSON.parse(document.getElementById("headway-data").textContent)
    if (typeof data !== "object" || data === null) return null
    const source = document.getElementById("headway-lanes")
    const bytes = fromBase64(source.textContent)
    source.textContent = "" // megabytes nobody reads again
    return new Trace(data, bytes)
  }

  constructor(data, bytes) {
    this.data = data
    this.threads = data.threads ?? []
    this.processes = data.processes ?? []
    this.byId = new Map(this.threads.map((thread) => [thread.id, thread]))
    this.processById = new Map(this.processes.map((process) => [process.id, process]))
    this.lanes = new Map((data.lanes ?? []).map((lane) => [lane.thread, Lane.decode(bytes, lane)]))
    this.gcLanes = new Map((data.gc_lanes ?? []).map((lane) => [lane.process, Lane.decode(bytes, lane)]))
    this.named = new Map()
    this.inProcess = new Map(this.processes.map((process) => [process.id, []]))
    for (const thread of this.threads) {
      if (!this.inProcess.has(thread.process)) this.inProcess.set(thread.process, [])
      this.inProcess.get(thread.process).push(thread)
      this.named.set(taken(thread), (this.named.get(taken(thread)) ?? 0) + 1)
    }
    this.segments = 0
    this.end = Math.max(Math.round((data.wall_s ?? 0) * TICKS), 1)
    for (const lane of this.lanes.values()) {
      this.segments += lane.length
      this.end = Math.max(this.end, lane.end)
    }
  }

  lane(thread) {
    return this.lanes.get(thread.id) ?? NO_LANE
  }

  gcLane(process) {
    return this.gcLanes.get(process) ?? NO_LANE
  }

  // What to call a thread within its process: its name, or its number; both, where several have that name.
  ownNameOf(thread) {
    return this.named.get(taken(thread)) > 1 && thread.name ? `${bareNameOf(thread)} (thread ${thread.number})` : bareNameOf(thread)
  }

  // With its process, where there are several.
  nameOf(thread) {
    const name = this.ownNameOf(thread)
    return this.processes.length > 1 ? `${name} (${this.nameOfProcess(this.process(thread))})` : name
  }

  // Containers have a process 1 each.
  nameOfProcess(process) {
    const alike = this.processes.filter((other) => other.pid === process?.pid).length > 1
    return `process ${process?.pid ?? "?"}${alike && process.file ? ` of ${process.file}` : ""}`
  }

  nameOfId(id) {
    return id === null || id === undefined || !this.byId.has(id) ? "nobody" : this.nameOf(this.byId.get(id))
  }

  process(thread) {
    return this.processById.get(thread.process)
  }

  // How much of a stretch each other thread of the process spent in a state, most first: who held the GVL while this one
  // waited, or who waited while this one held it.
  others(thread, state, from, to) {
    const found = []
    for (const other of this.inProcess.get(thread.process) ?? []) {
      if (other === thread) continue
      const ticks = this.lane(other).timeIn(state, from, to)
      if (ticks > 0) found.push({ thread: other, ticks })
    }
    return found.sort((a, b) => b.ticks - a.ticks)
  }

  holders(thread, from, to) {
    return this.others(thread, RUNNING, from, to)
  }

  waiters(thread, from, to) {
    return this.others(thread, READY, from, to)
  }

  gcTicks(process, from, to) {
    return this.gcLane(process).timeIn(GC, from, to)
  }

  // The longest waits of all, longest first.
  longestWaits(most) {
    const found = []
    let least = 0
    for (const [id, lane] of this.lanes) {
      for (let index = 0; index < lane.length; index++) {
        if (lane.states[index] !== READY) continue
        const ticks = lane.ends[index] - lane.startOf(index)
        if (ticks <= least) continue
        found.push({ id, index, ticks })
        if (found.length >= most * 8) least = keep(found, most)
      }
    }
    keep(found, most)
    return found.map(({ id, index, ticks }) => ({ thread: this.byId.get(id), index, ticks })).filter(({ thread }) => thread)
  }
}

// Sorts and cuts; returns what a further one must exceed.
function keep(found, most) {
  found.sort((a, b) => b.ticks - a.ticks)
  if (found.length > most) found.length = most
  return found.length < most ? 0 : found[most - 1].ticks
}
