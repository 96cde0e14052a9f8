// The figures of the whole trace, as tiles.

import { byId, element } from "./dom.js"
import { count, duration, percent, plural } from "./format.js"

export function showTotals({ data, threads, processes }) {
  const totals = data.totals ?? {}
  const wait = totals.wait ?? {}
  const switches = totals.switches ?? {}
  const alive = (totals.running_s ?? 0) + (totals.ready_s ?? 0) + (totals.suspended_s ?? 0)
  const gvl = processes.reduce((sum, process) => sum + process.end_s - process.start_s, 0) || data.wall_s
  const tiles = [
    tile("recorded", "Recorded", data.wall_s, duration(data.wall_s),
      `${plural(threads.length, "thread")}${processes.length > 1 ? `, ${plural(processes.length, "process", "processes")}` : ""}`),
    tile("ready", "Waiting", totals.ready_s, duration(totals.ready_s), `${percent(totals.ready_s / alive)} of thread time`),
    tile("running", "Running", totals.running_s, duration(totals.running_s), `GVL held ${percent(totals.running_s / gvl)}${onNoProcessor(totals.off_cpu_s)}`),
    tile("suspended", "Suspended", totals.suspended_s, duration(totals.suspended_s), `GVL free ${duration(totals.idle_s)}`),
    tile("wait-p50", "Median wait", wait.p50_s, duration(wait.p50_s), plural(wait.count ?? 0, "wait")),
    tile("wait-p99", "p99 wait", wait.p99_s, duration(wait.p99_s), `longest ${duration(wait.max_s)}`),
    tile("gc", "GC", data.gc?.total_s, duration(data.gc?.total_s),
      `${plural(data.gc?.count ?? 0, "run")}, up to ${duration(data.gc?.max_s)}`),
    tile("switches", "Switches", (switches.voluntary ?? 0) + (switches.preempted ?? 0),
      count((switches.voluntary ?? 0) + (switches.preempted ?? 0)), `${count(switches.preempted ?? 0)} preempted`),
  ]
  byId("totals").replaceChildren(element("dl", { class: "tiles" }, tiles))
}

const onNoProcessor = (seconds) => seconds > 0 ? `; ${duration(seconds)} of that on no processor` : ""

function tile(key, name, value, text, note) {
  return element("div", { class: `tile ${key}`, "data-total": key, "data-value": value ?? "" },
    element("dt", {}, name), element("dd", { class: "figure" }, text), element("dd", { class: "faint" }, note))
}
