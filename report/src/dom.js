// Elements made by hand. Text is always set as text, so that nothing a trace contains is ever read as HTML, and styles are
// set one by one, since the page allows no style attributes.

const SVG = "http://www.w3.org/2000/svg"

export const byId = (id) => document.getElementById(id)

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value)
    else if (name === "style") Object.assign(node.style, value)
    else node.setAttribute(name, value === true ? "" : value)
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false))
  return node
}

export const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children)

export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children)

// Text in which `code` is set as code. A figure stays with its unit, and an option is whole: a line that ends in one dash of
// two is no command any more. Nor does a line begin with the full stop behind code.
export function prose(text) {
  return text.split(/(`[^`]*(?:`[.,;)]*|$))/).flatMap((part, index) => {
    if (index % 2 === 0) return kept(part, FIGURE, FIGURE)
    const [, code, stop] = part.split("`")
    const set = element("code", {}, ...kept(code, / /, OPTION))
    return stop ? element("span", { class: "code-end" }, set, stop) : set
  })
}

const FIGURE = /\d[\d.]* (?:%|s|ms|µs)(?!\w)/
const OPTION = /^--?[\w-]{0,24}$/

// What the text is split into, with what is between; of both, what matches is in one line.
const kept = (text, separator, pattern) =>
  text.split(new RegExp(`(${separator.source})`)).map((part) => (pattern.test(part) ? element("span", { class: "nowrap" }, part) : part))

// Calls back at most once per frame, however often it is asked.
export function onceAFrame(callback) {
  let asked = false
  return () => {
    if (asked) return
    asked = true
    requestAnimationFrame(() => {
      asked = false
      callback()
    })
  }
}
