// A table of threads by process: what each does now, and a column for each second of what it did.

import { element } from "./dom.js"
import { percent } from "./format.js"
import { faultOf } from "./sections.js"
import { readPalette } from "./timeline/palette.js"

const COLUMN = 6 // pixels
const LINE = 2

export class Lanes {
  constructor(place) {
    this.place = place
    this.bodies = new Map()
    this.table = element("table", {}, element("thead", {}, element("tr", {}, element("th", { class: "thread-name", scope: "col" }, "Thread"),
      element("th", { scope: "col" }, "Over time"), element("th", { class: "state", scope: "col" }, "State"),
      element("th", { class: "number running-share", scope: "col" }, "Running"), element("th", { class: "number", scope: "col" }, "Waiting"))))
    this.recolour()
  }

  recolour() {
    this.colours = readPalette().text
    this.stripes = null
    this.draw()
  }

  show(processes, history) {
    if (!this.table.isConnected) this.place.replaceChildren(this.table)
    this.table.hidden = !processes.length
    const shown = new Set(processes.map(({ pid }) => pid))
    for (const [pid, body] of this.bodies) {
      if (shown.has(pid)) continue
      body.remove()
      this.bodies.delete(pid)
    }
    for (const process of processes) this.showProcess(process, history)
    this.draw()
  }

  showProcess(process, history) {
    let body = this.bodies.get(process.pid)
    if (!body) {
      body = element("tbody", { "data-pid": process.pid }, element("tr", { class: "process" }, element("th", { colspan: 5, scope: "rowgroup" })))
      body.rowsByNumber = new Map()
      const next = [...this.bodies].filter(([pid]) => pid > process.pid).sort(([a], [b]) => a - b)[0]?.[1]
      this.table.insertBefore(body, next ?? null)
      this.bodies.set(process.pid, body)
    }
    setText(body.rows[0].cells[0], titleOf(process))
    const threads = process.threads ?? []
    const living = new Set(threads.map(({ number }) => number))
    for (const [number, row] of body.rowsByNumber) {
      if (living.has(number)) continue
      row.remove()
      body.rowsByNumber.delete(number)
    }
    for (const thread of threads) this.showThread(body, thread, history.lane(process.pid, thread.number))
  }

  showThread(body, thread, lane) {
    let row = body.rowsByNumber.get(thread.number)
    if (!row) {
      row = element("tr", { "data-thread": thread.number }, element("th", { class: "thread-name", scope: "row" }),
        element("td", {}, element("canvas", { "aria-hidden": "true" })), element("td", { class: "state" }),
        element("td", { class: "number running-share" }), element("td", { class: "number" }))
      body.append(row)
      body.rowsByNumber.set(thread.number, row)
    }
    const [name, , state, running, ready] = row.cells
    setText(name, thread.name || `thread ${thread.number}`)
    name.title = name.textContent
    setText(state, thread.state === "ready" ? "waiting" : (thread.state ?? "–"))
    state.className = `state now-${thread.state}`
    setText(running, percent(lane?.shares[0]))
    setText(ready, percent(lane?.shares[1]))
    row.lane = lane
  }

  draw() {
    for (const body of this.bodies.values()) for (const row of body.rowsByNumber.values()) this.drawLane(row)
  }

  drawLane({ lane, cells }) {
    const canvas = cells[1].firstChild
    const ratio = devicePixelRatio || 1
    const width = Math.round(canvas.clientWidth * ratio)
    const height = Math.round(canvas.clientHeight * ratio)
    if (!width || !lane) return
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height })
    const context = canvas.getContext("2d")
    context.clearRect(0, 0, width, height)
    this.stripes ??= this.makeStripes(context)
    const step = COLUMN * ratio
    const columns = lane.columns.slice(-Math.floor(width / step))
    columns.forEach(([running, ready, suspended], index) => {
      const left = Math.round(width - (columns.length - index) * step)
      const right = Math.round(width - (columns.length - index - 1) * step)
      const fill = (style, top, bottom) => {
        context.fillStyle = style
        context.fillRect(left, top, right - left, bottom - top)
      }
      const low = height - pixels(running, height)
      if (suspended > 0) fill(this.colours.suspended, height - LINE * ratio, height)
      fill(this.colours.running, low, height)
      fill(this.stripes, Math.max(low - pixels(ready, height), 0), low)
    })
  }

  // Waiting differs from running not by colour alone.
  makeStripes(context) {
    const tile = element("canvas", { width: 6, height: 6 })
    const drawing = tile.getContext("2d")
    for (let y = 0; y < 6; y++) {
      for (let x = 0; x < 6; x++) {
        drawing.fillStyle = (x + y) % 6 < 4 ? this.colours.ready : this.colours["ready-stripe"]
        drawing.fillRect(x, y, 1, 1)
      }
    }
    return context.createPattern(tile, "repeat")
  }
}

// What there is of something is seen.
const pixels = (share, height) => (share > 0 ? Math.max(Math.round(share * height), 1) : 0)

function titleOf({ pid, command, error, threads_left_out: left }) {
  if (error) return faultOf(pid, error)
  return `Process ${pid}: ${command}${left ? ` (${left} threads that did least are left out)` : ""}`
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text
}
