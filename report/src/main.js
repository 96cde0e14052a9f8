// Fills the page: reads the trace once, then lets each part draw its own section.

import { byId, element } from "./dom.js"
import { Trace } from "./trace.js"
import { showSummary } from "./summary.js"
import { showTotals } from "./totals.js"
import { Timeline } from "./timeline/timeline.js"
import { showHistogram } from "./histogram.js"
import { showLongest } from "./tables/longest.js"
import { showWhom } from "./tables/whom.js"
import { showThreads } from "./tables/threads.js"
import { showWork } from "./tables/work.js"
import { showMarks } from "./tables/marks.js"
import { showProcesses } from "./tables/processes.js"
import { showLines } from "./tables/lines.js"
import { Flame } from "./flame/flame.js"

function show(trace) {
  showSummary(trace)
  showTotals(trace)
  const timeline = new Timeline(trace)
  showWork(trace, timeline)
  showHistogram(trace)
  showLongest(trace, timeline)
  new Flame(trace)
  showLines(trace)
  showWhom(trace, timeline)
  showThreads(trace, timeline)
  showMarks(trace, timeline)
  showProcesses(trace)
}

const began = performance.now()
const trace = Trace.read()
if (trace) {
  document.documentElement.dataset.readMs = (performance.now() - began).toFixed(1)
  show(trace)
  document.documentElement.dataset.segments = trace.segments
  document.documentElement.dataset.shownMs = (performance.now() - began).toFixed(1)
} else {
  byId("report").replaceChildren(element("p", { class: "notice" }, "This page holds no trace yet. ",
    element("code", {}, "headway report FILE --html OUT"), " writes one that does."))
}
