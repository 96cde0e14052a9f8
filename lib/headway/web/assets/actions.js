// What changes something: captures, the flight recorder and settings. All are asked for with the page's token.

import { byId, element } from "./dom.js"
import { count, plural } from "./format.js"
import { faultOf } from "./sections.js"

export class Actions {
  constructor(base, { token, controls }, chosen, changed) {
    Object.assign(this, { base, token, chosen, changed, edited: false, busy: false })
    const allowed = controls === "true"
    byId("settings-form").hidden = byId("recorder").hidden = !allowed
    byId("settings-off").hidden = allowed
    byId("capture").addEventListener("click", () => this.capture())
    byId("recorder").addEventListener("click", () => this.record())
    byId("settings-form").addEventListener("input", () => (this.edited = true))
    byId("settings-form").addEventListener("submit", (event) => {
      event.preventDefault()
      this.change()
    })
  }

  async post(path, body) {
    const response = await fetch(`${this.base}${path}`, {
      method: "POST", redirect: "error", headers: { "content-type": "application/json", "x-headway-token": this.token }, body: JSON.stringify(body),
    })
    const answer = await response.json().catch(() => ({ error: `the server answered with status ${response.status}` }))
    if (!response.ok) throw new Error(answer.error)
    return answer
  }

  show(processes, captures) {
    this.showCaptures(captures)
    const texts = [...new Set(processes.map(({ policy, quantum_ms, preempt }) => `policy ${policy}, quantum ${quantum_ms}\u00a0ms, preempt ${preempt}`))]
    byId("settings-now").textContent = texts.join(" · ") || "Headway is not at work."
    byId("recorder-now").textContent = recorders(processes)
    byId("recorder").textContent = idle(processes).length ? "Start recorder" : "Stop recorder"
    byId("recorder").disabled = !idle(processes).length && !flying(processes).length
    byId("capture").disabled = byId("apply").disabled = !processes.length
    if (this.edited || !processes.length) return
    byId("policy").value = processes[0].policy
    byId("quantum").value = processes[0].quantum_ms
  }

  showCaptures(captures) {
    const key = JSON.stringify(captures)
    if (this.captures === key) return
    this.captures = key
    byId("capture-list").replaceChildren(captures.length ? element("table", {},
      element("thead", {}, element("tr", {}, ["Time", "Process", "Size", ""].map((title) => element("th", { scope: "col" }, title)))),
      element("tbody", {}, captures.map(({ name, pid, at, bytes }) => element("tr", {}, element("td", {}, timeOf(at)), element("td", {}, String(pid)),
        element("td", {}, `${count(Math.max(bytes / 1024, 1))}\u00a0KiB`), element("td", {},
          element("a", { href: `${this.base}/captures/${name}/report`, target: "_blank", rel: "noopener" }, "Report"), " · ",
          element("a", { href: `${this.base}/captures/${name}`, download: name }, "Download"))))))
      : element("p", { class: "faint" }, "None yet."))
  }

  // One after the other: the server takes one at a time. The button stays enabled, else the keyboard would lose its place.
  async each(output, told, act, processes = this.chosen()) {
    if (this.busy) return false
    this.busy = true
    output.textContent = "…"
    const failed = []
    for (const { pid } of processes) await act(pid).catch((error) => failed.push(faultOf(pid, error.message)))
    output.className = failed.length ? "bad" : ""
    output.textContent = [...new Set(failed)].join(" · ") || told
    this.busy = false
    return !failed.length
  }

  capture() {
    return this.each(byId("captured"), "Captured.", async (pid) => this.showCaptures((await this.post("/captures", { pid })).captures))
  }

  // Starts one where nothing is recorded; if it runs everywhere, stops it.
  async record() {
    const processes = this.chosen().filter(({ process }) => process)
    const on = idle(processes).length > 0
    await this.each(byId("captured"), on ? "Started." : "Stopped.", (pid) => this.post("/recorder", { pid, on }), on ? idle(processes) : flying(processes))
    this.changed()
  }

  async change() {
    const wanted = { policy: byId("policy").value, quantum_ms: Number(byId("quantum").value) }
    const done = await this.each(byId("applied"), "Changed.", (pid) => this.post("/settings", { pid, ...wanted }))
    if (done) this.edited = false
    this.changed()
  }
}

const idle = (processes) => processes.filter(({ recorder }) => !recorder)
const flying = (processes) => processes.filter(({ recorder }) => recorder === "flight")

function recorders(processes) {
  const streams = processes.length - idle(processes).length - flying(processes).length
  const where = flying(processes).length === processes.length ? "" : ` in ${flying(processes).length} of ${plural(processes.length, "process", "processes")}`
  const flight = flying(processes).length ? `The flight recorder runs${where}.` : "No flight recorder runs."
  return streams ? `${flight} ${plural(streams, "process streams", "processes stream")} to a file.` : flight
}

const timeOf = (at) => at.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d).*$/, "$1-$2-$3 $4:$5:$6 UTC")
