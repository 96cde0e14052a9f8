// The top of the page: where the trace is from, what it says in a sentence, and what is wrong with it.

import { byId, element, prose } from "./dom.js"
import { count, duration, plural } from "./format.js"

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

// One sentence for each thing that makes the figures less than whole.
function notices({ data, processes, threads }) {
  const found = []
  for (const process of processes) {
    const who = processes.length > 1 ? `Process ${process.pid}` : "The recorder"
    if (process.dropped > 0) {
      const share = process.dropped / (process.dropped + process.events)
      found.push(`${who} dropped ${plural(process.dropped, "event")} of ${count(process.dropped + process.events)}` +
        ` (${(share * 100).toPrecision(2)} %): times near the gaps are estimates.`)
    }
    if (process.damage) {
      found.push(`The file of process ${process.pid} is damaged at byte ${count(process.damage.offset)}: ` +
        `${process.damage.what}. What comes before that is shown.`)
    }
    if (process.folded > 0) found.push(`${who} folded ${plural(process.folded, "stack")} for lack of room: their weight is shown without them.`)
  }
  if (data.marks_folded > 0) found.push(`${plural(data.marks_folded, "mark")} beyond the first ${count(data.marks?.length)} are not shown.`)
  if (!threads.length) found.push(`No thread was recorded${data.wall_s ? ` in ${duration(data.wall_s)}` : ""}.`)
  return found
}
