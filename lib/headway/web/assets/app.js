// Asks for the state once a second while somebody looks, and has it drawn.

import { byId, element } from "./dom.js"
import { History } from "./view.js"
import { Lanes } from "./lanes.js"
import { showHeadline, showNotices, showTotals, showWaits, showBlame, showChoice } from "./sections.js"
import { Actions } from "./actions.js"

const EVERY_MS = 1000
const LONGEST_MS = 30000
const PATIENCE_MS = 10000

const base = document.body.dataset.base
const history = new History()
const lanes = new Lanes(byId("lanes"))
const actions = new Actions(base, document.body.dataset, chosen, () => poll())
let state = { processes: [], captures: [], notices: [] }
let pause = EVERY_MS
let timer = null

// The processes that are looked at: those of the list, or the one chosen.
function chosen() {
  const pid = byId("process").value
  return state.processes.filter((process) => !pid || String(process.pid) === pid)
}

async function ask() {
  const response = await fetch(`${base}/state`, { signal: AbortSignal.timeout(PATIENCE_MS), redirect: "error" })
  if (response.status === 403) throw new Error("you may not see this page any more")
  if (!response.ok) throw new Error(`it answered with status ${response.status}`)
  return response.json()
}

async function poll() {
  try {
    state = await ask()
    history.add(state.processes)
    pause = EVERY_MS
    byId("trouble").replaceChildren()
    show()
  } catch (error) {
    pause = Math.min(pause * 2, LONGEST_MS)
    const why = error.name === "TimeoutError" ? "it took too long" : error.message
    byId("trouble").replaceChildren(element("p", { class: "notice" }, `No news from the server: ${why}. What is shown is old.`))
  }
  later()
}

function later() {
  clearTimeout(timer)
  if (!paused() && !document.hidden) timer = setTimeout(poll, pause)
}

const paused = () => byId("pause").getAttribute("aria-pressed") === "true"

function show() {
  showChoice(state.processes)
  const processes = chosen().filter((process) => process.process)
  showNotices(state)
  showHeadline(processes, history)
  showTotals(processes, history)
  lanes.show(chosen(), history)
  showWaits(processes, history)
  showBlame(processes)
  actions.show(processes, state.captures)
  document.documentElement.dataset.shown = Number(document.documentElement.dataset.shown ?? 0) + 1
}

byId("process").addEventListener("change", show)
byId("pause").addEventListener("click", () => {
  byId("pause").setAttribute("aria-pressed", String(!paused()))
  byId("pause").textContent = paused() ? "Go on" : "Pause"
  if (!paused()) poll()
  else clearTimeout(timer)
})
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !paused()) poll()
})
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => lanes.recolour())
addEventListener("resize", () => lanes.draw())
poll()
