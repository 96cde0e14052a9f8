// How many waits took how long, on a logarithmic axis, with the percentiles drawn in. The same in numbers below, for who
// cannot see the picture.

import { byId, element, svg } from "./dom.js"
import { count, duration, plural } from "./format.js"

const WIDTH = 560
const HEIGHT = 190
const FOOT = 24
const HEAD = 34
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
        duration(10 ** power)))),
    buckets.map(({ from_s, to_s, count: waits }) => svg("rect", { class: "bucket", "data-count": waits, x: x(from_s) + 0.5,
      y: Math.min(y(waits), HEIGHT - FOOT - 1.5), width: Math.max(x(to_s) - x(from_s) - 1, 1.5), height: Math.max(HEIGHT - FOOT - y(waits), 1.5) },
    svg("title", {}, `${duration(from_s)} to ${duration(to_s)}: ${plural(waits, "wait")} of ${count(wait.count)}`))),
    percentiles(wait, x))
}

// No more than fit beside each other.
function decades(low, high) {
  const every = Math.ceil((high - low) / 6)
  return Array.from({ length: high - low + 1 }, (_, index) => low + index).filter((power) => (power - low) % every === 0)
}

// Names go on two lines in turn, so that percentiles close to each other can both be read.
function percentiles(wait, x) {
  return PERCENTILES.filter(([key]) => wait[key] > 0).map(([key, name], index) => {
    const at = x(wait[key])
    return svg("g", { class: "percentile" },
      svg("line", { x1: at, x2: at, y1: index % 2 ? 26 : 14, y2: HEIGHT - FOOT }),
      svg("text", { x: at, y: index % 2 ? 23 : 11, "text-anchor": at > WIDTH - 20 ? "end" : at < 12 ? "start" : "middle" }, name))
  })
}
