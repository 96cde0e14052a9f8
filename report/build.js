// Builds the sources under src/ into the one file the gem ships. The file names its sources by their digest, so that a
// test can tell without npm whether it was built from them, and it allows no script or style but its own, by digest too:
// whatever a trace contains, nothing of it can run.

import { createHash } from "node:crypto"
import { mkdir, readFile, readdir, writeFile } from "node:fs/promises"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const here = dirname(fileURLToPath(import.meta.url))
const source = join(here, "src")
const target = join(here, "../lib/headway/report/page.html")

const sha256 = (text, encoding) => createHash("sha256").update(text).digest(encoding)

async function bundle(entry) {
  const { outputFiles } = await build({
    entryPoints: [join(source, entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    charset: "utf8",
    target: ["chrome100", "firefox100", "safari15.4"],
    legalComments: "none",
  })
  return outputFiles[0].text.trim()
}

// Paths and contents in the order of the paths; the Ruby test does the same.
async function digestOfSources() {
  const entries = await readdir(source, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile())
    .map((entry) => relative(source, join(entry.parentPath ?? entry.path, entry.name))).sort()
  const hash = createHash("sha256")
  for (const path of paths) hash.update(`${path}\0`).update(await readFile(join(source, path))).update("\0")
  return hash.digest("hex")
}

const [script, style, template, digest] = await Promise.all([
  bundle("main.js"), bundle("styles/main.css"), readFile(join(source, "page.html"), "utf8"), digestOfSources(),
])
// Either would end its element early.
if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error("the bundle contains the end of its own element")

const policy = `default-src 'none'; script-src 'sha256-${sha256(script, "base64")}'; ` +
  `style-src 'sha256-${sha256(style, "base64")}'; img-src data:; base-uri 'none'; form-action 'none'`
const values = { POLICY: policy, SOURCES: digest, STYLE: style, SCRIPT: script }
const page = template.replace(/\{\{(\w+)\}\}/g, (_, name) => values[name])
await mkdir(dirname(target), { recursive: true })
await writeFile(target, page)
console.log(`${relative(join(here, ".."), target)}: ${(Buffer.byteLength(page) / 1024).toFixed(1)} KiB`)
