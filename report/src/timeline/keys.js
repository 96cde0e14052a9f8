// The timeline by keyboard. A key that means something here does not scroll the page as well.

const PAN = 0.15
const ZOOM = 0.6

export function listenToKeys(canvas, timeline) {
  const { view } = timeline
  const actions = {
    "+": () => view.zoom(ZOOM), "=": () => view.zoom(ZOOM), w: () => view.zoom(ZOOM),
    "-": () => view.zoom(1 / ZOOM), "_": () => view.zoom(1 / ZOOM), s: () => view.zoom(1 / ZOOM),
    ArrowLeft: () => view.pan(-PAN), a: () => view.pan(-PAN),
    ArrowRight: () => view.pan(PAN), d: () => view.pan(PAN),
    ArrowUp: () => timeline.moveRow(-1),
    ArrowDown: () => timeline.moveRow(1),
    n: () => timeline.moveWait(1),
    p: () => timeline.moveWait(-1),
    0: () => view.reset(), Home: () => view.reset(),
    Escape: () => (timeline.chosen ? timeline.unchoose() : canvas.blur()), // lets the wheel scroll the page again
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return
    event.preventDefault()
    actions[event.key]()
  })
}
