// The lanes as pixels, written straight into image data: one column of pixels after the other, each showing the share of
// the time it stands for that its thread ran (from the bottom), waited (striped, above that) and was suspended (a line).
// One way of drawing for every zoom: a segment that is wider than a pixel simply fills its columns whole, and cost depends
// on the pixels drawn, not on the segments behind them.

import { RUNNING, READY, SUSPENDED, STATES } from "../lane.js"

export class Raster {
  constructor(context) {
    this.context = context
    this.shares = new Float32Array(0)
  }

  begin(width, height) {
    if (this.image?.width !== width || this.image?.height !== height) {
      this.image = this.context.createImageData(width, height)
      this.pixels = new Uint32Array(this.image.data.buffer)
      this.shares = new Float32Array(width * STATES)
    } else this.pixels.fill(0)
    this.width = width
    this.height = height
  }

  end() {
    this.context.putImageData(this.image, 0, 0)
  }

  verticalLine(x, colour) {
    if (x < 0 || x >= this.width) return
    for (let at = Math.round(x); at < this.pixels.length; at += this.width) this.pixels[at] = colour
  }

  // Fills a column from `top` to `bottom`, as much of it as is on the canvas.
  column(x, top, bottom, colour) {
    const last = Math.min(bottom, this.height)
    for (let y = Math.max(top, 0); y < last; y++) this.pixels[y * this.width + x] = colour
  }

  lane(lane, from, step, top, bottom, colours, ratio) {
    const { shares, width } = this
    const height = bottom - top
    const line = Math.max(Math.round(2 * ratio), 1)
    lane.shares(from, step, width, shares)
    for (let x = 0; x < width; x++) {
      const running = shares[x * STATES + RUNNING]
      const ready = shares[x * STATES + READY]
      const suspended = shares[x * STATES + SUSPENDED]
      if (running + ready + suspended === 0) continue
      const low = bottom - pixelsOf(running, height)
      const high = Math.max(low - pixelsOf(ready, height), top)
      if (suspended > 0) this.column(x, bottom - line, bottom, colours.suspended)
      this.column(x, low, bottom, colours.running)
      if (ready > 0) this.stripes(x, Math.min(high, bottom - 1), Math.max(low, high + 1), colours, ratio)
    }
  }

  // Waiting differs from running not by colour alone.
  stripes(x, top, bottom, colours, ratio) {
    const period = Math.round(6 * ratio)
    const dark = Math.max(Math.round(2 * ratio), 1)
    const last = Math.min(bottom, this.height)
    for (let y = Math.max(top, 0); y < last; y++) {
      this.pixels[y * this.width + x] = (x + y) % period < dark ? colours["ready-stripe"] : colours.ready
    }
  }

  plain(lane, state, from, step, top, bottom, colour) {
    lane.shares(from, step, this.width, this.shares)
    for (let x = 0; x < this.width; x++) {
      const share = this.shares[x * STATES + state]
      if (share > 0) this.column(x, bottom - pixelsOf(share, bottom - top), bottom, colour)
    }
  }
}

// However short: what happened shows.
const pixelsOf = (share, height) => (share > 0 ? Math.max(Math.round(share * height), 1) : 0)
