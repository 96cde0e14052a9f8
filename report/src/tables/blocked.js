// Where work was blocked: the line of the program's own that each stack was in, and the call in it that blocked.

import { element } from "../dom.js"
import { duration, percent } from "../format.js"
import { table } from "./table.js"

// As Report::Behind has it: a line of the program that called Ruby's own and other people's code says more.
const FOREIGN = /^<|\/gems\/|\/lib\/ruby\/|\/rubygems\//
// And of what it waits for another thread in, the library that calls it; concurrent-ruby's locks say no more.
const FOR_A_THREAD = /^(Thread::(Mutex|ConditionVariable|Queue|SizedQueue)|Monitor)#/
const LIBRARY = /\/gems\/(?!concurrent-ruby-[^/]+\/.*\/synchronization\/)/

// Nothing where nothing was.
export function blockedTable(trace) {
  const frames = trace.data.blame?.frames ?? []
  const rows = (trace.data.work ?? []).flatMap((work) => rowsOf(work, frames))
  if (!rows.length) return null
  return table({
    name: "Where work was blocked", rows, sortBy: "Blocked",
    columns: [
      { title: "Work", text: true, class: "name", value: ({ work }) => work.name, show: (name) => name || element("span", { class: "faint" }, "no name") },
      { title: "Blocked in", text: true, class: "code", value: ({ frame }) => frame.method ?? "",
        show: (method, { call }) => element("span", {}, method, call && element("span", { class: "faint" }, ` at ${call}`)) },
      { title: "Line", text: true, class: "path", value: ({ frame }) => (frame.line ? `${frame.file}:${frame.line}` : (frame.file ?? "")) },
      { title: "Blocked", value: (row) => row.seconds, show: (value) => duration(value), help: "for 10 ms and longer at a time" },
      { title: "Of its time without the GVL", value: share, show: (value) => percent(value), share, bar: "suspended" },
    ],
  })
}

const share = ({ work, seconds }) => Math.min(seconds / Math.max(work.total_s - work.running_s - work.ready_s, seconds), 1)

function rowsOf(work, frames) {
  const rows = new Map()
  for (const { frames: stack, s } of work.blocked ?? []) { // the longest first, whose call is told
    const filed = stack.filter((index) => frames[index]?.file && !frames[index].file.startsWith("<"))
    const own = filed.find((index) => !FOREIGN.test(frames[index].file)) ?? filed[0] ?? stack[0]
    const frame = frames[own]
    if (!frame) continue
    const row = rows.get(own) ?? { work, frame, seconds: 0, call: own === stack[0] ? null : frames[leafOf(stack, own, frames)]?.method }
    row.seconds += s
    rows.set(own, row)
  }
  return [...rows.values()]
}

function leafOf(stack, own, frames) {
  if (!FOR_A_THREAD.test(frames[stack[0]]?.method)) return stack[0]
  return stack.slice(0, stack.indexOf(own)).find((index) => LIBRARY.test(frames[index]?.file ?? "")) ?? stack[0]
}
