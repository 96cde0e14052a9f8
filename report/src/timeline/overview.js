// The strip above the lanes: how many threads waited, over the whole trace, and a frame around what is drawn below. Drag in
// it to move the frame, or beside it to draw a new one.

import { READY, RUNNING, STATES } from "../lane.js"

const HEIGHT = 44

export class Overview {
  constructor(canvas, trace, view) {
    this.canvas = canvas
    this.trace = trace
    this.view = view
    this.context = canvas.getContext("2d")
    canvas.addEventListener("pointerdown", (event) => this.press(event))
  }

  // Adds up all lanes, once for each width.
  measure(width) {
    this.width = width
    this.ready = new Float32Array(width)
    this.running = new Float32Array(width)
    const shares = new Float32Array(width * STATES)
    for (const lane of this.trace.lanes.values()) {
      lane.shares(0, this.view.max / width, width, shares)
      for (let x = 0; x < width; x++) {
        this.ready[x] += shares[x * STATES + READY]
        this.running[x] += shares[x * STATES + RUNNING]
      }
    }
    this.most = this.ready.reduce((most, value) => Math.max(most, value), 0)
    this.canvas.dataset.most = upTo(this.most)
  }

  paint(palette) {
    const width = Math.max(Math.floor(this.canvas.clientWidth), 1)
    const ratio = Math.min(window.devicePixelRatio || 1, 2)
    if (width !== this.width) this.measure(width)
    Object.assign(this.canvas, { width: width * ratio, height: HEIGHT * ratio })
    const { context, view } = this
    const colours = palette.text
    context.scale(ratio, ratio)
    const foot = HEIGHT - 5
    for (let x = 0; x < width; x++) {
      const high = (this.ready[x] / Math.max(this.most, 1)) * (foot - 12)
      context.fillStyle = colours.ready
      if (high > 0) context.fillRect(x, foot - Math.max(high, 0.5), 1, Math.max(high, 0.5))
      context.globalAlpha = Math.min(this.running[x], 1)
      context.fillStyle = colours.running
      context.fillRect(x, foot + 1, 1, 4)
      context.globalAlpha = 1
    }
    this.frame(colours, (view.from / view.max) * width, (view.to / view.max) * width)
    context.fillStyle = colours.faint
    context.font = `10.5px ${palette.font}`
    context.fillText(this.canvas.dataset.most, 6, 11)
  }

  frame(colours, from, to) {
    if (this.view.whole) return
    const { context } = this
    context.globalAlpha = 0.72
    context.fillStyle = colours.panel
    context.fillRect(0, 0, from, HEIGHT)
    context.fillRect(to, 0, this.width - to, HEIGHT)
    context.globalAlpha = 1
    context.strokeStyle = colours.accent
    context.lineWidth = 1.5
    context.strokeRect(from - 0.75, 0.75, Math.max(to - from, 2) + 1.5, HEIGHT - 1.5)
  }

  press(event) {
    const { view, canvas } = this
    const timeAt = (pointer) => ((pointer.clientX - canvas.getBoundingClientRect().left) / canvas.clientWidth) * view.max
    const start = timeAt(event)
    const inside = !view.whole && start >= view.from && start <= view.to
    const { from, to } = view
    canvas.setPointerCapture(event.pointerId)
    const move = (pointer) => {
      const time = timeAt(pointer)
      if (inside) view.set(from + time - start, to + time - start)
      else if (Math.abs(time - start) > view.max / 200) view.set(Math.min(start, time), Math.max(start, time))
    }
    const end = (pointer) => {
      canvas.removeEventListener("pointermove", move)
      if (!inside && !view.whole && Math.abs(timeAt(pointer) - start) <= view.max / 200) view.set(start - view.span / 2, start + view.span / 2)
    }
    canvas.addEventListener("pointermove", move)
    canvas.addEventListener("pointerup", end, { once: true })
    canvas.addEventListener("pointercancel", end, { once: true })
  }
}

// What is drawn is an average over a pixel's time: a wait that is short beside it comes to less than one.
function upTo(most) {
  if (most < 0.05) return most > 0 ? "up to <0.1 waiting" : "nobody waiting"
  return `up to ${most < 9.95 ? most.toFixed(1).replace(/\.0$/, "") : Math.round(most)} waiting`
}
