// The stretch of time that is drawn. Whoever changes it tells nobody else: it calls back.

const LEAST_TICKS = 100 // 10 µs across the whole width: below that there is nothing to see

export class View {
  constructor(end, onChange) {
    this.max = end
    this.from = 0
    this.to = end
    this.onChange = onChange
  }

  get span() {
    return this.to - this.from
  }

  get whole() {
    return this.from <= 0 && this.to >= this.max
  }

  set(from, to) {
    const span = Math.min(Math.max(to - from, Math.min(LEAST_TICKS, this.max)), this.max)
    const middle = (from + to) / 2
    this.from = Math.min(Math.max(middle - span / 2, 0), this.max - span)
    this.to = this.from + span
    this.onChange()
  }

  // By a factor below 1 it comes closer; what is at `share` of the width stays where it is.
  zoom(factor, share = 0.5) {
    const span = Math.min(Math.max(this.span * factor, Math.min(LEAST_TICKS, this.max)), this.max)
    const fixed = this.from + share * this.span
    this.set(fixed - share * span, fixed + (1 - share) * span)
  }

  pan(share) {
    const ticks = share * this.span
    this.set(this.from + ticks, this.to + ticks)
  }

  reset() {
    this.set(0, this.max)
  }

  // Brings a stretch into view with room around it; leaves a view that shows it well as it is.
  reveal(from, to) {
    const wanted = to - from
    if (from >= this.from && to <= this.to && wanted > this.span / 50) return
    if (wanted > this.span / 50 && wanted < this.span * 0.8) this.set((from + to - this.span) / 2, (from + to + this.span) / 2)
    else this.set(from - wanted * 1.5, to + wanted * 1.5)
  }
}
