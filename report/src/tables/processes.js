// The processes the trace is of, and how whole the record of each is.

import { byId } from "../dom.js"
import { count, duration, digits } from "../format.js"
import { table } from "./table.js"

export function showProcesses(trace) {
  byId("processes").append(table({
    name: "Processes", rows: trace.processes, sortBy: "PID", ascending: true,
    columns: [
      { title: "PID", value: (row) => row.pid },
      { title: "Parent", value: (row) => row.parent_pid },
      { title: "Command", text: true, class: "path", value: (row) => row.command ?? "" },
      { title: "Ruby", text: true, value: (row) => row.ruby ?? "" },
      { title: "Policy", text: true, value: (row) => [row.policy, row.preempt].filter(Boolean).join(", ") },
      { title: "Quantum", value: (row) => row.quantum_ms, show: (value) => (value ? `${digits(value)}\u00a0ms` : "–") },
      { title: "Cores", value: (row) => row.cpus },
      { title: "Recorded", value: (row) => row.end_s - row.start_s, show: (value) => duration(value) },
      { title: "Events", value: (row) => row.events, show: (value) => count(value) },
      { title: "Dropped", value: (row) => row.dropped, show: (value) => count(value) },
      { title: "Trace", text: true, value: (row) => (row.damage ? `${row.damage.what}, at byte ${count(row.damage.offset)}` : "whole") },
    ],
  }))
}
