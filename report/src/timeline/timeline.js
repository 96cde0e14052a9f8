// The timeline: keeps what is viewed, searched and chosen, and has its parts draw it at the next frame.

import { byId, element, onceAFrame } from "../dom.js"
import { count, duration, instant, percent } from "../format.js"
import { READY, TICKS } from "../lane.js"
import { describe } from "./card.js"
import { Gestures } from "./gestures.js"
import { listenToKeys } from "./keys.js"
import { Marks } from "./marks.js"
import { Overview } from "./overview.js"
import { Painter, ticksOf } from "./painter.js"
import { readPalette } from "./palette.js"
import { pick, segment } from "./pick.js"
import { rowsOf } from "./rows.js"
import { View } from "./view.js"

const AXIS = 24
const NARROW = 640

export class Timeline {
  constructor(trace) {
    this.trace = trace
    this.section = byId("timeline")
    this.lanes = byId("lanes")
    this.canvas = byId("canvas")
    this.card = byId("card")
    this.marks = new Marks(trace)
    this.draw = onceAFrame(() => this.paint())
    this.view = new View(trace.end, () => this.viewChanged())
    this.painter = new Painter(this.canvas, trace, this.marks)
    this.overview = new Overview(byId("overview"), trace, this.view)
    this.palette = readPalette()
    this.listen()
    this.arrange()
  }

  listen() {
    new Gestures(this.canvas, this.view, {
      hover: (place) => this.hover(place), click: (place) => this.choose(this.pick(place), place), leave: () => this.hover(null),
    })
    listenToKeys(this.canvas, this)
    this.lanes.addEventListener("scroll", this.draw)
    byId("lane-search").addEventListener("input", () => this.arrange())
    byId("lane-search").addEventListener("keydown", (event) => event.key === "Enter" && this.jump(this.layout.threads[0]))
    byId("lane-order").addEventListener("change", () => this.arrange())
    byId("zoom-in").addEventListener("click", () => this.view.zoom(0.5))
    byId("zoom-out").addEventListener("click", () => this.view.zoom(2))
    byId("zoom-reset").addEventListener("click", () => this.view.reset())
    new ResizeObserver(this.draw).observe(this.section)
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.palette = readPalette()
      this.draw()
    })
  }

  // Which rows there are, after a search or a change of order.
  arrange() {
    const search = byId("lane-search").value
    this.layout = rowsOf(this.trace, this.marks, { order: byId("lane-order").value, search })
    byId("names").replaceChildren(...this.layout.rows.map((row) => this.nameItem(row)))
    const [shown, all] = [this.layout.threads.length, this.trace.threads.length]
    byId("lane-count").textContent = search ? `${count(shown)} of ${count(all)} threads` : ""
    Object.assign(this.section.dataset, { rows: shown })
    this.row = null
    this.unchoose()
  }

  nameItem(row) {
    const style = { height: `${row.height}px` }
    if (row.kind === "process") return element("li", { class: "row process", style }, this.trace.nameOfProcess(row.process))
    if (row.kind !== "thread") return element("li", { class: "row faint", style }, row.kind === "gc" ? "GC" : "Marks")
    const { thread } = row
    const alive = thread.running_s + thread.ready_s + thread.suspended_s
    // By keyboard the arrows go through them: of hundreds none is to be passed on the way.
    return element("li", { class: "row thread", style, "data-thread": thread.id },
      element("button", { type: "button", tabindex: "-1", title: [this.trace.nameOf(thread), thread.site].filter(Boolean).join("\n"), onclick: () => this.jump(row) }, this.trace.ownNameOf(thread)),
      element("span", { class: "figure faint", title: `waited ${duration(thread.ready_s)}` }, percent(alive ? thread.ready_s / alive : 0)))
  }

  viewChanged() {
    if (this.card.dataset.hovered) this.hover(null)
    this.draw()
  }

  paint() {
    const began = performance.now()
    const room = Math.round(Math.min(Math.max(window.innerHeight * 0.66, 220), 680))
    this.lanes.style.maxHeight = `${room}px`
    const width = byId("axis").clientWidth
    this.painter.resize(width, Math.max(Math.min(this.layout.height, room - AXIS), 1))
    const { ticks, step } = ticksOf(this.view, width)
    this.painter.paint({ rows: this.layout.rows, view: this.view, scroll: this.lanes.scrollTop, ticks,
      chosen: this.hovered ?? this.chosen, palette: this.palette })
    byId("axis").replaceChildren(...ticks.map((tick) => element("span", { style: { left: `${(this.painter.x(tick) / width) * 100}%` } }, instant(tick / TICKS, step))))
    this.overview.paint(this.palette)
    this.tell(began)
  }

  tell(began) {
    const { from, to, span } = this.view
    byId("view-range").textContent = this.view.whole ? duration(span / TICKS)
      : `${instant(from / TICKS, span / TICKS / 100)} to ${instant(to / TICKS, span / TICKS / 100)} · ${duration(span / TICKS)}`
    byId("zoom-out").disabled = byId("zoom-reset").disabled = this.view.whole
    Object.assign(this.section.dataset, { from: from / TICKS, to: to / TICKS, frameMs: (performance.now() - began).toFixed(2) })
    if (!this.section.dataset.firstDrawMs) this.section.dataset.firstDrawMs = performance.now().toFixed(1)
  }

  pick({ x, y }) {
    const { trace, marks, view } = this
    return pick({ trace, marks, view, rows: this.layout.rows, width: this.painter.width }, x, y + this.lanes.scrollTop)
  }

  hover(place) {
    this.hovered = place && this.pick(place)
    if (this.hovered) this.showCard(this.hovered, place, true)
    else if (this.chosen) this.showCard(this.chosen, this.placeOf(this.chosen))
    else this.card.hidden = true
    this.draw()
  }

  choose(subject, place = subject && this.placeOf(subject)) {
    this.hovered = null
    this.chosen = subject
    if (subject?.row.thread) this.row = subject.row
    for (const item of byId("names").children) item.classList.toggle("chosen", item.dataset.thread === String(this.row?.thread.id))
    if (subject) byId("said").textContent = this.showCard(subject, place)
    else this.card.hidden = true
    this.draw()
  }

  unchoose() {
    this.choose(null)
  }

  // Beside the pointer, on the side that has room; in a narrow window below the lanes, where the style sheet puts it.
  showCard(subject, place, hovered = false) {
    const said = describe(this.card, this.trace, subject)
    if (hovered) this.card.dataset.hovered = "true"
    this.card.hidden = false
    const frame = this.card.parentElement.getBoundingClientRect()
    const box = this.canvas.getBoundingClientRect()
    const x = box.left - frame.left + place.x
    const fits = x + 18 + this.card.offsetWidth < frame.width
    const y = box.top - frame.top + place.y + 22
    Object.assign(this.card.style, window.innerWidth < NARROW ? { left: "", top: "" }
      : { left: `${fits ? x + 14 : Math.max(x - 14 - this.card.offsetWidth, 4)}px`, top: `${y}px` })
    return said
  }

  placeOf({ row, from, to }) {
    const { view, painter } = this
    const x = ((Math.min(Math.max((from + to) / 2, view.from), view.to) - view.from) / view.span) * painter.width
    return { x, y: row.y + row.height / 2 - this.lanes.scrollTop }
  }

  // To a thread: its longest wait in what is viewed, so that there is something to start from.
  jump(row) {
    if (!row) return
    this.canvas.focus({ preventScroll: true })
    this.scrollTo(row)
    this.row = row
    const lane = this.trace.lane(row.thread)
    const { longest } = lane.census(READY, this.view.from, this.view.to, Infinity)
    this.choose(segment(this.trace, row, longest >= 0 ? longest : Math.min(lane.find(this.view.from), lane.length - 1)))
  }

  // To one wait of one thread, whatever was searched or viewed before.
  show(thread, index) {
    if (byId("lane-search").value) {
      byId("lane-search").value = ""
      this.arrange()
    }
    const row = this.layout.threads.find((candidate) => candidate.thread === thread)
    if (!row) return
    this.section.scrollIntoView({ block: "start" })
    if (index === undefined) return this.jump(row)
    const subject = segment(this.trace, row, index)
    this.canvas.focus({ preventScroll: true })
    this.scrollTo(row)
    this.view.reveal(subject.from, subject.to)
    this.choose(subject)
  }

  scrollTo(row) {
    const room = this.painter.height ?? 0
    if (row.y < this.lanes.scrollTop || row.y + row.height > this.lanes.scrollTop + room) this.lanes.scrollTop = row.y - room / 2
  }

  moveRow(direction) {
    const { threads } = this.layout
    const now = threads.indexOf(this.row)
    this.jump(threads[Math.min(Math.max(now + direction, 0), threads.length - 1)])
  }

  moveWait(direction) {
    const row = this.row ?? this.layout.threads[0]
    if (!row) return
    const lane = this.trace.lane(row.thread)
    const start = this.chosen?.row === row && this.chosen.index >= 0 ? this.chosen.index + direction : lane.find(this.view.from)
    const subject = segment(this.trace, row, lane.seek(READY, start, direction))
    if (!subject) return
    this.view.reveal(subject.from, subject.to)
    this.choose(subject)
  }
}
