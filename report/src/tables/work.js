// Work: what requests and jobs did in all, by name, which of them waited longest, and where they were blocked.

import { byId, element } from "../dom.js"
import { count, duration } from "../format.js"
import { blockedWork } from "./blocked.js"
import { waitedTable } from "./waited.js"
import { table } from "./table.js"

export function showWork(trace, timeline) {
  const rows = trace.data.work ?? []
  if (!rows.length) return
  const time = (value) => (value ? duration(value) : "–")
  byId("work").hidden = false
  byId("work").append(table({
    name: "Work", rows, sortBy: "Took",
    columns: [
      { title: "Work", text: true, class: "name", value: (row) => row.name, show: (name) => name || element("span", { class: "faint" }, "no name") },
      { title: "Times", value: (row) => row.count, show: (value) => count(value) },
      { title: "Took", value: (row) => row.total_s, show: time },
      { title: "Running", value: (row) => row.running_s, show: time },
      { title: "Waiting", value: (row) => row.ready_s, show: time, help: "for the GVL", share: (row) => row.ready_s / row.total_s, bar: "ready" },
      { title: "Suspended", value: (row) => Math.max(row.total_s - row.running_s - row.ready_s, 0), show: time,
        help: "I/O, sleep, a lock, a wait for a connection, or native code without the GVL" },
      { title: "Others waited", value: (row) => row.blamed_s, show: time, help: "while it held the GVL, as far as its stack was seen" },
    ],
  }))
  const waited = waitedTable(trace, timeline)
  if (waited) byId("work").append(element("h3", {}, "Of each kind the one that waited longest for the GVL"), waited)
  const blocked = blockedWork(trace)
  if (blocked) byId("work").append(element("h3", {}, "Where it was blocked"), blocked)
}
