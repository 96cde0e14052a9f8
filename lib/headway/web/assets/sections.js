// The parts of the page around the lanes. Each is drawn anew only when it says something else.

import { byId, element, prose } from "./dom.js"
import { count, digits, duration, percent, plural } from "./format.js"
import { showHistogram } from "./histogram.js"

const RATES = 5 // answers, one a second
const MINUTE = 60
const LINES = 10

function whenChanged(node, value, draw) {
  const key = JSON.stringify(value)
  if (node.shownFor === key) return
  node.shownFor = key
  draw()
}

const threadsOf = (processes) => processes.reduce((sum, { process }) => sum + (process.threads ?? 0), 0)

// Most of what can be wrong with a process begins with which one.
export const faultOf = (pid, error) => (error.startsWith(`process ${pid} `) ? `P${error.slice(1)}` : `Process ${pid}: ${error}`)

const inWhat = ({ seconds, whole }) => (whole ? "since Headway started" : `in the last ${Math.round(seconds)}\u00a0s`)

export function showNotices({ notices }) {
  whenChanged(byId("notices"), notices, () =>
    byId("notices").replaceChildren(...notices.map((notice) => element("p", { class: "notice", role: "note" }, notice))))
}

export function showHeadline(processes, history) {
  const { ready } = history.rates(processes, RATES)
  const { wait } = history.waits(processes, MINUTE)
  const who = `${plural(processes.length, "process", "processes")}, ${plural(threadsOf(processes), "thread")}`
  const text = !processes.length ? "Nothing to see: no process here runs Headway"
    : ready < 0.005 ? `${who}: nobody waits for the GVL`
      : `${who}: ${ready.toFixed(2)} wait for the GVL at a time${wait.count ? `, half of the waits take ${duration(wait.p50_s)}` : ""}${worksOf(processes, history)}`
  whenChanged(byId("headline"), text, () => byId("headline").replaceChildren(...prose(text)))
}

const worksOf = (processes, history) => history.works(processes, RATES)
  .map(({ kind, perSecond, waited }) => `; ${digits(perSecond)} ${kind}s a second wait for it for ${percent(waited)} of their time`).join("")

export function showTotals(processes, history) {
  const rates = history.rates(processes, RATES)
  const { wait } = history.waits(processes, MINUTE)
  const when = inWhat(rates)
  const tiles = processes.length ? [
    ["processes", "Threads", threadsOf(processes), count(threadsOf(processes)), plural(processes.length, "process", "processes")],
    ["ready", "Waiting", rates.ready, rates.ready.toFixed(2), "threads at a time"],
    ["running", "Running", rates.running, percent(rates.running / processes.length), `GVL held, ${when}`],
    ["suspended", "Suspended", rates.suspended, rates.suspended.toFixed(1), "threads at a time"],
    ["wait-p50", "Median wait", wait.p50_s, duration(wait.p50_s), plural(wait.count, "wait")],
    ["wait-p99", "p99 wait", wait.p99_s, duration(wait.p99_s), `longest ${duration(wait.max_s)}`],
    ["switches", "Switches", rates.voluntary + rates.preempted, digits(rates.voluntary + rates.preempted), "a second"],
    ["preempted", "Preempted", rates.preempted, digits(rates.preempted), "a second"],
  ] : []
  whenChanged(byId("totals"), tiles, () => byId("totals").replaceChildren(element("dl", { class: "tiles" }, tiles.map(tile))))
}

function tile([key, name, value, text, note]) {
  return element("div", { class: `tile ${key}`, "data-total": key, "data-value": value },
    element("dt", {}, name), element("dd", { class: "figure" }, text), element("dd", { class: "faint" }, note))
}

export function showWaits(processes, history) {
  const section = byId("histogram")
  const { buckets, wait, seconds } = history.waits(processes, MINUTE)
  whenChanged(section, buckets, () => {
    section.replaceChildren(section.firstElementChild)
    showHistogram({ data: { wait_histogram: buckets, totals: { wait } } })
    section.append(element("p", { class: "faint help" }, `Of the last ${Math.max(Math.round(seconds), 1)}\u00a0s, a minute at most.`))
  })
}

export function showBlame(processes) {
  const lines = processes.flatMap(({ pid, blame }) => (blame?.lines ?? []).map((line) => ({ pid, ...line })))
    .sort((a, b) => b.weight - a.weight).slice(0, LINES)
  const total = processes.reduce((sum, { blame }) => sum + (blame?.weight ?? 0), 0)
  const head = ["Method", "Line", "Wait caused", "Of all blame", ...(processes.length > 1 ? ["Process"] : [])]
  whenChanged(byId("lines"), [lines, head], () => byId("lines").replaceChildren(lines.length
    ? element("table", { "data-table": "blame" },
      element("thead", {}, element("tr", {}, head.map((title, index) => element("th", { scope: "col", class: index > 1 ? "number" : null }, title)))),
      element("tbody", {}, lines.map((line) => element("tr", {}, element("td", { class: "code" }, line.method ?? "?"),
        element("td", { class: "path" }, line.file ? `${line.file}:${line.line}` : ""), element("td", { class: "number" }, duration(line.weight)),
        element("td", { class: "number" }, percent(line.weight / total)),
        processes.length > 1 && element("td", { class: "number" }, String(line.pid))))))
    : element("p", { class: "faint" }, "Nothing has held up anybody since Headway started.")))
}

// The list to choose a process from, which keeps what is chosen as long as it is there.
export function showChoice(processes) {
  const list = byId("process")
  whenChanged(list, processes.map(({ pid }) => pid), () => {
    const before = list.value
    list.replaceChildren(element("option", { value: "" }, "all"), ...processes.map(({ pid }) => element("option", { value: pid }, String(pid))))
    list.value = processes.some(({ pid }) => String(pid) === before) ? before : ""
  })
}
