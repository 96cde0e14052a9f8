// The top of the page: where the trace is from, what it says in a sentence, and what is wrong with it.

import { byId, element, prose } from "./dom.js"
import { duration } from "./format.js"

export function showSummary(trace) {
  const { data, processes } = trace
  const first = processes[0]
  byId("headline").replaceChildren(...prose(data.headline || "What this trace says"))
  const commands = [...new Set(processes.map((process) => process.command).filter(Boolean))]
  if (commands.length) {
    byId("command").hidden = false
    byId("command").textContent = commands.join("  ·  ")
    document.title = `${commands[0].slice(0, 60)} – Headway report`
  }
  byId("provenance").textContent = [data.headway, first?.ruby && `Ruby ${first.ruby.replace(/^ruby\s*/i, "")}`,
    first?.started_at && moment(first.started_at)].filter(Boolean).join(" · ")
  byId("notices").replaceChildren(...notices(trace).map((notice) => element("p", { class: "notice", role: "note" }, notice)))
}

const moment = (text) => text.replace("T", " ").replace(/\.\d+/, "").replace("+00:00", " UTC").replace(/Z$/, " UTC")

// One sentence for each thing that makes the figures less than whole, in the words of the other reports.
function notices({ data, threads }) {
  const found = (data.notes ?? []).map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`)
  if (!threads.length) found.push(`No thread was recorded${data.wall_s ? ` in ${duration(data.wall_s)}` : ""}.`)
  return found
}
