// Pointer, wheel and touch: drag pans, two fingers pinch, a wheel zooms with Ctrl (which is also how a touchpad's pinch
// arrives) or once the timeline has the focus; else the wheel scrolls the page as everywhere.

const CLICK = 4 // pixels a pointer may move and still click

export class Gestures {
  constructor(canvas, view, { hover, click, leave }) {
    Object.assign(this, { canvas, view, hover, click, leave })
    this.pointers = new Map()
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false })
    canvas.addEventListener("pointerdown", (event) => this.press(event))
    canvas.addEventListener("pointermove", (event) => this.move(event))
    canvas.addEventListener("pointerup", (event) => this.release(event))
    canvas.addEventListener("pointercancel", (event) => this.pointers.delete(event.pointerId))
    canvas.addEventListener("pointerleave", () => this.pointers.size || leave())
    canvas.addEventListener("dblclick", (event) => view.zoom(0.4, this.place(event).share))
  }

  place(event) {
    const box = this.canvas.getBoundingClientRect()
    return { x: event.clientX - box.left, y: event.clientY - box.top, share: (event.clientX - box.left) / box.width }
  }

  wheel(event) {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX
    const zooms = event.ctrlKey || event.metaKey || document.activeElement === this.canvas
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.view.pan(pixels(sideways, event) / this.canvas.clientWidth)
    else if (zooms) this.view.zoom(Math.exp(Math.max(Math.min(pixels(event.deltaY, event), 240), -240) * (event.ctrlKey ? 0.008 : 0.002)), this.place(event).share)
    else return
    event.preventDefault()
  }

  press(event) {
    if (event.button > 0) return
    this.pointers.set(event.pointerId, this.place(event))
    this.travelled = this.pointers.size > 1 ? CLICK + 1 : 0
    this.canvas.setPointerCapture(event.pointerId)
    if (event.pointerType === "mouse") this.canvas.focus({ preventScroll: true })
  }

  move(event) {
    const place = this.place(event)
    const before = this.pointers.get(event.pointerId)
    if (!before) return this.hover(place)
    this.travelled += Math.abs(place.x - before.x)
    if (this.pointers.size === 2) this.pinch(event.pointerId, before, place)
    else if (this.travelled > CLICK) this.view.pan((before.x - place.x) / this.canvas.clientWidth)
    this.pointers.set(event.pointerId, place)
  }

  pinch(id, before, now) {
    const [, other] = [...this.pointers].find(([key]) => key !== id)
    const gap = (place) => Math.max(Math.abs(place.x - other.x), 20)
    this.view.zoom(gap(before) / gap(now), ((now.share + other.share) / 2))
  }

  release(event) {
    const pressed = this.pointers.delete(event.pointerId)
    if (pressed && this.travelled <= CLICK) this.click(this.place(event))
  }
}

const pixels = (delta, event) => delta * (event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1)
