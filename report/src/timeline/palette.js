// The colours of the style sheet, for the canvas: as text, and as the numbers that image data is made of.

const NAMES = ["running", "ready", "ready-stripe", "suspended", "gc", "mark", "mark-text", "grid", "text", "faint", "accent", "band", "panel"]

export function readPalette() {
  const style = getComputedStyle(document.documentElement)
  const palette = { text: {}, pixel: {} }
  for (const name of NAMES) {
    const value = style.getPropertyValue(`--${name}`).trim()
    palette.text[name] = value
    palette.pixel[name] = pixel(value)
  }
  palette.font = getComputedStyle(document.body).fontFamily
  return palette
}

// #rrggbb as the little-endian number of an RGBA pixel.
function pixel(value) {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(value)
  if (!match) return 0
  const [red, green, blue] = match.slice(1).map((hex) => parseInt(hex, 16))
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0
}
