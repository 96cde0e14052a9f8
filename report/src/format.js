// Figures as people read them: three digits, a unit, a space that does not break.

const GAP = "\u00a0"

const UNITS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]]

export function digits(value, significant = 3) {
  if (value === 0) return "0"
  const decimals = significant - 1 - Math.floor(Math.log10(Math.abs(value)))
  return value.toFixed(Math.min(Math.max(decimals, 0), 6))
}

// A duration given in seconds. Minutes only where seconds would be many.
export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–"
  if (seconds === 0) return `0${GAP}s`
  if (seconds >= 600) {
    const whole = Math.round(seconds)
    return `${Math.floor(whole / 60)}${GAP}min ${whole % 60}${GAP}s`
  }
  const [size, unit] = UNITS.find(([least]) => Math.abs(seconds) >= least * 0.9995) ?? [1e-9, "ns"]
  return `${digits(seconds / size)}${GAP}${unit}`
}

// A point in time, as exact as a step of so many seconds needs.
export function instant(seconds, step) {
  const decimals = Math.min(Math.max(-Math.floor(Math.log10(step) + 1e-9), 0), 7)
  return `${seconds.toFixed(decimals)}${GAP}s`
}

export function percent(share) {
  if (!Number.isFinite(share)) return "–"
  const value = share * 100
  const text = value > 0 && value < 0.1 ? "<0.1" : value.toFixed(value > 0 && value < 9.95 ? 1 : 0)
  return `${text}${GAP}%`
}

export function count(number) {
  if (number === null || number === undefined) return "–"
  return String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, "\u202f")
}

export const plural = (number, one, many = `${one}s`) => `${count(number)}${GAP}${number === 1 ? one : many}`
