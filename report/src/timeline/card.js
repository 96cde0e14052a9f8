// Says in words what was picked: for a wait who held the GVL meanwhile, and for how long each.

import { element } from "../dom.js"
import { duration, instant, percent, plural } from "../format.js"
import { READY, RUNNING, SUSPENDED, TICKS } from "../lane.js"

const MOST = 5
const WORDS = { [RUNNING]: "ran", [READY]: "waited", [SUSPENDED]: "was suspended for" }
const seconds = (ticks) => ticks / TICKS

// Fills the card and returns what a screen reader is to say.
export function describe(card, trace, subject) {
  for (const key of Object.keys(card.dataset)) delete card.dataset[key]
  card.dataset.kind = subject.kind
  const parts = PARTS[subject.kind](card, trace, subject)
  const shown = parts.flat().filter(Boolean)
  card.replaceChildren(...shown)
  return shown.map(spoken).join(". ")
}

// A list is read item by item; its items say how.
function spoken(part) {
  const items = [...part.querySelectorAll("li")]
  return items.length ? items.map((item) => item.dataset.said ?? item.textContent).join("; ") : part.textContent
}

const PARTS = { segment: ofSegment, column: ofColumn, gc: ofGc, mark: ofMark }

function ofSegment(card, trace, subject) {
  const { thread, state, from, to } = subject
  Object.assign(card.dataset, { state: ["running", "ready", "suspended"][state], thread: trace.nameOf(thread), seconds: seconds(to - from), from: seconds(from) })
  const title = head(`${trace.nameOf(thread)} ${WORDS[state]} ${duration(seconds(to - from))}`, at(from, to))
  if (state === READY) return [title, ...heldBy(card, trace, subject)]
  if (state === RUNNING) return [title, ...keptWaiting(trace, subject)]
  return [title]
}

function ofColumn(card, trace, subject) {
  const { thread, from, to, shares, waits, longest } = subject
  Object.assign(card.dataset, { thread: trace.nameOf(thread), shares: shares.map((share) => share.toFixed(6)).join(" "),
    from: seconds(from), to: seconds(to) })
  const mixed = element("p", {}, `running ${percent(shares[RUNNING])}, waiting ${percent(shares[READY])}, suspended ${percent(shares[SUSPENDED])}`)
  const title = head(`${trace.nameOf(thread)} in ${duration(seconds(to - from))}`, at(from, to))
  if (!longest) return [title, mixed]
  Object.assign(card.dataset, { state: "ready", seconds: seconds(longest.to - longest.from) })
  const number = `${plural(waits.count, "wait")}${waits.bounded ? " and more" : ""}`
  const most = waits.count === 1 ? "1 wait," : `${number}, the longest`
  return [title, mixed, element("p", {}, `${most} ${duration(seconds(longest.to - longest.from))}`), ...heldBy(card, trace, longest)]
}

function ofGc(card, trace, { from, to, count }) {
  card.dataset.seconds = seconds(to - from)
  return [head(`Garbage collection, ${duration(seconds(to - from))}`, at(from, to)),
    count > 1 && element("p", {}, `the longest of ${count} here`)]
}

function ofMark(card, trace, { mark, from, to }) {
  card.dataset.mark = mark.name
  return [head(mark.name, mark.instant ? at(from, from) : `${duration(seconds(to - from))}, ${at(from, to)}`),
    element("p", {}, `by ${trace.nameOf(mark.thread)}`)]
}

const head = (title, note) => element("p", { class: "card-title" }, element("strong", {}, title), " ", element("span", { class: "faint" }, note))

const at = (from, to) => `at ${instant(seconds(from), Math.max(seconds(to - from) / 100, 1e-6))}`

function heldBy(card, trace, { thread, from, to }) {
  const holders = trace.holders(thread, from, to)
  const held = holders.reduce((sum, { ticks }) => sum + ticks, 0)
  const list = holders.map(({ thread: other, ticks }) => ({ name: trace.nameOf(other), ticks }))
  if (to - from - held > (to - from) / 1000) list.push({ name: "nobody (the GVL was free)", key: "nobody", ticks: to - from - held })
  list.sort((a, b) => b.ticks - a.ticks)
  if (list.length) Object.assign(card.dataset, { holder: list[0].key ?? list[0].name, holderSeconds: seconds(list[0].ticks) })
  const gc = trace.gcTicks(thread.process, from, to)
  return [element("p", { class: "card-what" }, "Meanwhile the GVL was held by"), ...bars(list, to - from, "running"),
    gc > 0 && element("p", { class: "faint" }, `${duration(seconds(gc))} of it was garbage collection`)]
}

function keptWaiting(trace, { thread, from, to }) {
  const waiters = trace.waiters(thread, from, to).map(({ thread: other, ticks }) => ({ name: trace.nameOf(other), ticks }))
  if (!waiters.length) return [element("p", { class: "faint" }, "Nobody waited meanwhile.")]
  return [element("p", { class: "card-what" }, "Meanwhile waited"), ...bars(waiters, to - from, "ready")]
}

function bars(list, total, kind) {
  const rest = list.slice(MOST)
  const items = list.slice(0, MOST).map(({ name, ticks }) => element("li",
    { "data-said": `${name} ${duration(seconds(ticks))}, ${percent(ticks / total)}`, "data-name": name, "data-seconds": seconds(ticks) },
    element("span", { class: "card-name" }, name), element("span", { class: "figure" }, duration(seconds(ticks))),
    element("span", { class: "figure faint" }, percent(ticks / total)),
    element("i", { class: `bar ${kind}`, style: { width: `${Math.min((ticks / total) * 100, 100)}%` } })))
  if (rest.length) items.push(element("li", { class: "faint" }, `and ${plural(rest.length, "other thread")}`))
  return [element("ul", { class: "card-list" }, items)]
}
