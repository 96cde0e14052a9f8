// Draws the rows that are visible: lanes as pixels, then grid, marks and selection over them.

import { GC, TICKS } from "../lane.js"
import { MARK_LEVEL } from "./marks.js"
import { Raster } from "./raster.js"

const PADDING = 4 // above and below a lane's bar

export class Painter {
  constructor(canvas, trace, marks) {
    this.canvas = canvas
    this.trace = trace
    this.marks = marks
    this.context = canvas.getContext("2d")
    this.raster = new Raster(this.context)
  }

  resize(width, height) {
    this.ratio = Math.min(window.devicePixelRatio || 1, 2)
    this.width = width
    this.height = height
    const [wide, high] = [Math.max(Math.round(width * this.ratio), 1), Math.max(Math.round(height * this.ratio), 1)]
    if (this.canvas.width !== wide || this.canvas.height !== high) Object.assign(this.canvas, { width: wide, height: high })
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` })
  }

  x(time) {
    return ((time - this.view.from) / this.view.span) * this.width
  }

  paint({ rows, view, scroll, ticks, chosen, palette }) {
    this.view = view
    const { ratio, raster } = this
    const visible = rows.filter((row) => row.y < scroll + this.height && row.y + row.height > scroll)
    const step = view.span / this.canvas.width
    raster.begin(this.canvas.width, this.canvas.height)
    for (const tick of ticks) raster.verticalLine(this.x(tick) * ratio, palette.pixel.grid)
    for (const row of visible) {
      const top = Math.round((row.y - scroll + PADDING) * ratio)
      const bottom = Math.round((row.y - scroll + row.height - PADDING) * ratio)
      if (row.kind === "thread") raster.lane(this.trace.lane(row.thread), view.from, step, top, bottom, palette.pixel, ratio)
      if (row.kind === "gc") raster.plain(this.trace.gcLane(row.process.id), GC, view.from, step, top, bottom, palette.pixel.gc)
    }
    raster.end()
    const { context } = this
    context.save()
    context.scale(ratio, ratio)
    for (const row of visible) {
      if (row.kind === "process") this.rule(row.y - scroll, palette)
      if (row.kind === "marks") this.paintMarks(row, scroll, palette)
    }
    if (chosen) this.outline(chosen, scroll, palette)
    context.restore()
  }

  rule(y, palette) {
    this.context.fillStyle = palette.text.grid
    this.context.fillRect(0, y, this.width, 1)
  }

  paintMarks(row, scroll, palette) {
    const { context } = this
    const drawn = [] // per level: up to where, so that what would cover the same pixel is left out
    context.font = `10.5px ${palette.font}`
    context.textBaseline = "middle"
    for (const mark of this.marks.in(row.process.id)) {
      const right = this.x(mark.to)
      const left = this.x(mark.from)
      if (right < 0 || left > this.width || right < (drawn[mark.level] ?? -1)) continue
      const y = row.y - scroll + 2 + mark.level * MARK_LEVEL
      drawn[mark.level] = Math.max(right, left + 1)
      if (mark.instant) this.diamond(left, y + 7, palette)
      else this.span(mark.name, left, right, y, palette)
    }
  }

  span(name, left, right, y, palette) {
    const { context } = this
    const from = Math.max(left, -2)
    const width = Math.max(Math.min(right, this.width + 2) - from, 1)
    context.fillStyle = palette.text.mark
    context.fillRect(from, y + 1, width, MARK_LEVEL - 3)
    if (width < 24) return
    context.save()
    context.beginPath()
    context.rect(from, y, width - 3, MARK_LEVEL)
    context.clip()
    context.fillStyle = palette.text["mark-text"]
    context.fillText(name, Math.max(from, 0) + 4, y + MARK_LEVEL / 2)
    context.restore()
  }

  diamond(x, y, palette) {
    const { context } = this
    context.fillStyle = palette.text.mark
    context.beginPath()
    context.moveTo(x, y - 6)
    context.lineTo(x + 4.5, y)
    context.lineTo(x, y + 6)
    context.lineTo(x - 4.5, y)
    context.fill()
  }

  // What the pointer or the keyboard is on: framed, with a band over all lanes, so that one sees who ran meanwhile.
  outline({ row, from, to }, scroll, palette) {
    const { context } = this
    const left = Math.max(this.x(from), -4)
    const right = Math.min(this.x(to), this.width + 4)
    const width = Math.max(right - left, 1.5)
    context.fillStyle = palette.text.band
    context.fillRect(left, 0, width, this.height)
    context.strokeStyle = palette.text.text
    context.lineWidth = 1.5
    context.strokeRect(left - 0.5, row.y - scroll + PADDING - 1.5, width + 1, row.height - 2 * PADDING + 3)
  }
}

// Times to draw a line at: 1, 2 or 5 of a power of ten, no closer than `least` pixels.
export function ticksOf(view, width, least = 90) {
  const rough = (view.span / TICKS) * (least / Math.max(width, 1))
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough) ?? 10 * power
  const ticks = []
  for (let index = Math.ceil(view.from / TICKS / step - 1e-9); index * step * TICKS <= view.to; index++) ticks.push(index * step * TICKS)
  return { ticks, step }
}
