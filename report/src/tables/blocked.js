// Where work was blocked, or without any threads: the line of the program's own that each stack was in, and the call in it that blocked.

import { element } from "../dom.js"
import { count, duration, percent } from "../format.js"
import { leafOf, lineOf, ownOf } from "../stack.js"
import { table } from "./table.js"

// Nothing where nothing was.
export function blockedWork(trace) {
  return blockedTable("Where work was blocked", "Work", trace.data.work.flatMap((work) => linesOf([work], trace)), ([work]) => work.name)
}

// Pools have dozens of them, alike.
export function blockedThreads(trace) {
  return blockedTable("Where threads were blocked", "Thread", linesOf(trace.threads, trace),
    (threads) => (threads.length === 1 ? trace.nameOf(threads[0]) : `${count(threads.length)} threads`))
}

function blockedTable(name, title, rows, nameOf) {
  if (!rows.length) return null
  return table({
    name, rows, sortBy: "Blocked",
    columns: [
      { title, text: true, class: "name", value: ({ owners }) => nameOf(owners), show: (value) => value || element("span", { class: "faint" }, "no name") },
      { title: "Blocked in", text: true, class: "code", value: ({ frame }) => frame.method ?? "",
        show: (method, { calls, seconds }) => element("span", {}, method, element("span", { class: "faint" }, atMostly(calls, seconds))) },
      { title: "Line", text: true, class: "path", value: ({ frame }) => lineOf(frame) },
      { title: "Blocked", value: (row) => row.seconds, show: (value) => duration(value), help: "for 10 ms and longer at a time" },
      { title: "Of the time without the GVL", value: share, show: (value) => percent(value), share, bar: "suspended" },
    ],
  })
}

// Who has a lock does something else with it, in the same line. As Report::Elsewhere has it.
function atMostly(calls, all) {
  const [[call, seconds] = []] = [...calls].sort((one, other) => other[1] - one[1])
  if (!call) return ""
  return ` ${seconds >= 0.9 * all ? "" : seconds >= 0.5 * all ? "mostly " : "longest "}at ${call}`
}

const away = ({ suspended_s, total_s, running_s, ready_s }) => suspended_s ?? total_s - running_s - ready_s
const share = ({ owners, seconds }) => Math.min(seconds / Math.max(owners.reduce((sum, owner) => sum + away(owner), 0), seconds), 1)

function linesOf(owners, { data }) {
  const frames = data.blame?.frames ?? []
  const rows = new Map()
  for (const { owner, frames: stack, s } of blocks(owners)) { // one owner's after the other's
    const own = ownOf(stack, frames)
    const frame = frames[own]
    if (!frame) continue
    const row = rows.get(own) ?? { frame, seconds: 0, owners: [], calls: new Map() }
    const call = own === stack[0] ? "" : frames[leafOf(stack, own, frames)]?.method ?? ""
    row.seconds += s
    row.calls.set(call, (row.calls.get(call) ?? 0) + s)
    if (row.owners.at(-1) !== owner) row.owners.push(owner)
    rows.set(own, row)
  }
  return [...rows.values()]
}

const blocks = (owners) => owners.flatMap((owner) => (owner.blocked ?? []).map((stack) => ({ owner, ...stack })))
