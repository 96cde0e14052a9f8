// A table that sorts by the column whose head is pressed and shows more rows when asked. A column has a title, the value it
// sorts by, and optionally how to show it.

import { element } from "../dom.js"
import { count } from "../format.js"

const STEP = 15

export const NOBODY = "nobody (GVL free)"

export function table({ name, columns, rows, sortBy, ascending = false }) {
  let order = { column: columns.find(({ title }) => title === sortBy) ?? columns[0], ascending }
  let shown = STEP
  const heads = columns.map((column) => element("th", { scope: "col", class: column.text ? null : "number" },
    element("button", { type: "button", title: column.help, onclick: () => press(column) }, column.title)))
  const body = element("tbody")
  const more = element("button", { type: "button", class: "more", onclick: () => show((shown = shown > 200 ? Infinity : shown * 4)) })

  function press(column) {
    order = { column, ascending: column === order.column ? !order.ascending : Boolean(column.text) }
    show()
  }

  function show() {
    const { column } = order
    const sign = order.ascending ? 1 : -1
    const sorted = [...rows].sort((a, b) => sign * compare(column.value(a), column.value(b)))
    body.replaceChildren(...sorted.slice(0, shown).map((row) => element("tr", {}, columns.map((each) => cell(each, row)))))
    heads.forEach((head, index) => {
      if (columns[index] === column) head.setAttribute("aria-sort", order.ascending ? "ascending" : "descending")
      else head.removeAttribute("aria-sort")
    })
    more.hidden = shown >= rows.length
    more.textContent = `Show more (${count(rows.length - Math.min(shown, rows.length))} left)`
  }

  show()
  return element("div", { class: "table", "data-table": name, "data-rows": rows.length },
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name },
      element("table", {}, element("caption", { class: "hidden" }, name), element("thead", {}, element("tr", {}, heads)), body)), more)
}

function cell(column, row) {
  const value = column.value(row)
  const shown = column.show ? column.show(value, row) : value
  const share = column.share?.(row)
  return element("td", { class: column.text ? column.class : "number", "data-value": value ?? "" },
    shown ?? "–", share > 0 && element("i", { class: `bar ${column.bar ?? "ready"}`, style: { width: `${Math.min(share * 100, 100)}%` } }))
}

function compare(a, b) {
  if (typeof a === "string" || typeof b === "string") return String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true })
  return (a ?? -1) - (b ?? -1)
}

// A thread's name, which leads to it in the timeline.
export function threadLink(trace, timeline, id, index) {
  const thread = trace.byId.get(id)
  if (!thread) return element("span", { class: "faint" }, NOBODY)
  return element("button", { type: "button", class: "link", title: thread.site, onclick: () => timeline.show(thread, index) }, trace.nameOf(thread))
}
