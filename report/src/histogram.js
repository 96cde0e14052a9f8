// How many waits took how long, on a logarithmic axis, with the percentiles drawn in. The same in numbers below, for who
// cannot see the picture.

import { byId, element, svg } from "./dom.js"
import { count, duration, plural } from "./format.js"

const WIDTH = 560
const HEIGHT = 218
const FOOT = 24
const HEAD = 54
const LEVELS = [48, 30, 12] // where names of percentiles stand, nearest first
const LABEL = 50
const PERCENTILES = [["p50_s", "p50", "half of the waits took less"], ["p90_s", "p90", "9 of 10 took less"],
  ["p99_s", "p99", "99 of 100 took less"], ["p999_s", "p99.9", "999 of 1000 took less"], ["max_s", "max", "the longest"]]

export function showHistogram({ data }) {
  const section = byId("histogram")
  const buckets = (data.wait_histogram ?? []).filter(({ count: waits }) => waits > 0)
  const wait = data.totals?.wait ?? {}
  if (!buckets.length) {
    section.append(element("p", { class: "faint" }, "Nobody waited for the GVL."))
    return
  }
  section.append(picture(buckets, wait), element("dl", { class: "percentiles" }, PERCENTILES.map(([key, name, meaning]) =>
    element("div", { "data-percentile": name, "data-value": wait[key], title: meaning }, element("dt", {}, name), element("dd", {}, duration(wait[key]))))))
}

function picture(buckets, wait) {
  // Waits of no measurable length have a place at the left all the same.
  const least = Math.max(Math.min(...buckets.map(({ from_s }) => from_s).filter((time) => time > 0), wait.max_s || Infinity, 1), 1e-9)
  const low = Math.floor(Math.log10(least) + 1e-9)
  const high = Math.max(Math.ceil(Math.log10(Math.max(...buckets.map(({ to_s }) => to_s))) - 1e-9), low + 1)
  const x = (time) => ((Math.log10(Math.max(time, 10 ** low)) - low) / (high - low)) * WIDTH
  const most = Math.max(...buckets.map((bucket) => bucket.count))
  const y = (waits) => HEIGHT - FOOT - (waits / most) * (HEIGHT - FOOT - HEAD)
  const label = `Histogram of ${plural(wait.count ?? 0, "wait")}: half shorter than ${duration(wait.p50_s)}, ` +
    `99 of 100 shorter than ${duration(wait.p99_s)}, the longest ${duration(wait.max_s)}`
  return svg("svg", { class: "histogram", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    decades(low, high).map((power) => svg("g", {},
      svg("line", { class: "grid", x1: x(10 ** power), x2: x(10 ** power), y1: HEAD, y2: HEIGHT - FOOT }),
      svg("text", { class: "faint", x: x(10 ** power), y: HEIGHT - 8, "text-anchor": power === low ? "start" : power === high ? "end" : "middle" },
        decade(power)))),
    buckets.map(({ from_s, to_s, count: waits }) => svg("rect", { class: "bucket", "data-count": waits, x: x(from_s) + 0.5,
      y: Math.min(y(waits), HEIGHT - FOOT - 1.5), width: Math.max(x(to_s) - x(from_s) - 1, 1.5), height: Math.max(HEIGHT - FOOT - y(waits), 1.5) },
    svg("title", {}, `${duration(from_s)} to ${duration(to_s)}: ${plural(waits, "wait")} of ${count(wait.count)}`))),
    percentiles(wait, x))
}

const decade = (power) => duration(10 ** power).replace(/\.0+/, "")

// No more than fit beside each other.
function decades(low, high) {
  const every = Math.ceil((high - low) / 6)
  return Array.from({ length: high - low + 1 }, (_, index) => low + index).filter((power) => (power - low) % every === 0)
}

// Names that would cover each other go on lines of their own; one that finds no room is left out: all are listed below.
function percentiles(wait, x) {
  const taken = LEVELS.map(() => -Infinity)
  return PERCENTILES.filter(([key]) => wait[key] > 0).map(([key, name]) => {
    const at = x(wait[key])
    const left = Math.min(Math.max(at - LABEL / 2, 0), WIDTH - LABEL)
    const level = taken.findIndex((right) => left >= right)
    if (level >= 0) taken[level] = left + LABEL
    const top = LEVELS[Math.max(level, 0)]
    return svg("g", { class: "percentile" },
      svg("line", { x1: at, x2: at, y1: top + 3, y2: HEIGHT - FOOT }),
      level >= 0 && svg("text", { x: left + LABEL / 2, y: top, "text-anchor": "middle" }, name))
  })
}
