// The blame flame graph, the outermost frame at the top. Its boxes are elements, so that each can be focused, read and
// found; those too narrow to be seen are not made.

import { byId, element } from "../dom.js"
import { duration, percent, plural } from "../format.js"
import { layOut, treeOf, weightOf } from "./tree.js"

const LEAST = 0.0012 // of the width: about a pixel
const ROW = 21
const NAMED = 26 // pixels a box needs to bear its name
const SHADES = 6

export class Flame {
  constructor(trace) {
    this.trace = trace
    this.blame = trace.data.blame ?? {}
    this.box = byId("flame")
    if (!this.blame.stacks?.length) return this.nothing()
    this.box.addEventListener("click", (event) => this.zoom(this.nodeOf(event.target)))
    this.box.addEventListener("keydown", (event) => this.key(event))
    this.box.addEventListener("pointerover", (event) => this.tell(this.nodeOf(event.target)))
    this.box.addEventListener("focusin", (event) => this.tell(this.nodeOf(event.target)))
    byId("flame-search").addEventListener("input", () => this.mark())
    byId("flame-reset").addEventListener("click", () => this.zoom(this.root))
    this.offerHolders()
    this.build()
  }

  nothing() {
    byId("blame-tools").hidden = true
    this.box.hidden = true
    byId("flame-detail").textContent = "No stack was taken: nobody waited long enough for one."
  }

  offerHolders() {
    const weights = new Map()
    for (const { thread, weight_s } of this.blame.stacks) weights.set(thread, (weights.get(thread) ?? 0) + weight_s)
    const holders = [...weights].sort((a, b) => b[1] - a[1])
    byId("flame-thread").append(element("option", { value: "" }, "all threads"),
      ...holders.map(([id]) => element("option", { value: id }, this.trace.nameOfId(id))))
    byId("flame-thread").addEventListener("change", () => this.build())
  }

  build() {
    const holder = byId("flame-thread").value
    this.root = treeOf(this.blame.stacks.filter(({ thread }) => !holder || String(thread) === holder))
    this.zoom(this.root)
  }

  nodeOf(target) {
    return this.nodes.get(target.closest?.("[role=treeitem]"))
  }

  name(node) {
    const frame = this.blame.frames[node.frame]
    return node.frame === null ? "all blame" : (frame?.method || "(unknown)")
  }

  place(node) {
    const frame = this.blame.frames[node.frame]
    return frame?.file ? `${frame.file}${frame.line ? `:${frame.line}` : ""}` : ""
  }

  zoom(focus) {
    if (!focus) return
    this.focus = focus
    this.nodes = new Map()
    this.elements = new Map()
    this.width = this.box.clientWidth
    const placed = layOut(focus, LEAST)
    const deepest = placed.reduce((most, { node }) => Math.max(most, node.depth), 0)
    const sheet = element("div", { class: "flame-sheet", role: "none", style: { height: `${(deepest + 1) * ROW}px` } },
      placed.map((place) => this.boxOf(place)))
    this.box.replaceChildren(sheet)
    byId("flame-reset").disabled = focus === this.root
    this.mark()
    this.tell(focus)
  }

  boxOf({ node, left, width, ancestor }) {
    const name = this.name(node)
    const box = element("div", {
      role: "treeitem", class: `box${ancestor ? " ancestor" : ""}${node.frame === null ? " root" : ` shade-${shade(this.place(node) || name)}`}`,
      tabindex: node === this.focus ? "0" : "-1", "aria-level": node.depth + 1, "data-weight": node.weight,
      "aria-expanded": node.children.size ? "true" : null,
      "aria-label": `${name} ${this.place(node)}, ${duration(node.weight)}, ${percent(this.share(node))}`,
      style: { left: `${left * 100}%`, width: `${width * 100}%`, top: `${node.depth * ROW}px` },
    }, width * this.width > NAMED ? name : "")
    this.nodes.set(box, node)
    this.elements.set(node, box)
    return box
  }

  share(node) {
    return this.root.weight > 0 ? node.weight / this.root.weight : 0
  }

  tell(node) {
    if (!node) return
    const parts = node.frame === null
      ? [element("strong", {}, `${duration(node.weight)} of waiting blamed`), ` on ${plural(this.blame.stacks.length, "stack")}`,
        this.blame.folded > 0 && `; ${plural(this.blame.folded, "stack")} folded away`]
      : [element("strong", {}, this.name(node)), ` ${this.place(node)} `, element("span", { class: "nowrap" },
        `– ${duration(node.weight)} of waiting, ${percent(this.share(node))}`)]
    byId("flame-detail").replaceChildren(...parts.filter(Boolean))
  }

  // Shows what the search finds, and how much of the blame lies in it.
  mark() {
    const wanted = byId("flame-search").value.trim().toLowerCase()
    const found = new Map()
    const matches = (frame) => {
      if (!found.has(frame)) {
        const { method, file } = this.blame.frames[frame] ?? {}
        found.set(frame, `${method ?? ""} ${file ?? ""}`.toLowerCase().includes(wanted))
      }
      return found.get(frame)
    }
    this.box.classList.toggle("searched", wanted !== "")
    for (const [box, node] of this.nodes) box.classList.toggle("match", wanted !== "" && node.frame !== null && matches(node.frame))
    const weight = wanted ? weightOf(this.root, matches) : 0
    const share = this.root.weight > 0 ? weight / this.root.weight : 0
    byId("flame-matched").textContent = wanted ? `${percent(share)} of the blame matches` : ""
    this.box.dataset.matched = wanted ? share : ""
  }

  key(event) {
    const node = this.nodeOf(document.activeElement)
    if (!node) return
    const seen = (list) => list.filter((each) => this.elements.has(each)).sort((a, b) => b.weight - a.weight)
    const beside = node.parent ? seen([...node.parent.children.values()]) : [node]
    const to = {
      ArrowDown: () => seen([...node.children.values()])[0], ArrowUp: () => node.parent,
      ArrowRight: () => beside[beside.indexOf(node) + 1], ArrowLeft: () => beside[beside.indexOf(node) - 1],
    }[event.key]
    if (to) this.moveFocus(to())
    else if (event.key === "Enter" || event.key === " ") this.zoomAndFocus(node)
    else if (event.key === "Escape") this.zoomAndFocus(this.root)
    else return
    event.preventDefault()
  }

  zoomAndFocus(node) {
    this.zoom(node)
    this.moveFocus(node)
  }

  moveFocus(node) {
    const box = this.elements.get(node)
    if (!box) return
    for (const other of this.nodes.keys()) other.tabIndex = other === box ? 0 : -1
    box.focus()
  }
}

// One shade for each file, the same in every report.
function shade(text) {
  let hash = 0
  for (const letter of text.replace(/:\d+$/, "")) hash = (hash * 31 + letter.codePointAt(0)) | 0
  return Math.abs(hash) % SHADES
}
