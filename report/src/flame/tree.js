// Stacks merged into a tree, from the outermost frame to the line that held the GVL. No recursion: stacks may be deep.

export function treeOf(stacks) {
  const root = node(null, null, 0)
  for (const { frames, weight_s } of stacks) {
    let at = root
    root.weight += weight_s
    for (let index = frames.length - 1; index >= 0; index--) {
      const frame = frames[index]
      if (!at.children.has(frame)) at.children.set(frame, node(at, frame, at.depth + 1))
      at = at.children.get(frame)
      at.weight += weight_s
    }
  }
  return root
}

const node = (parent, frame, depth) => ({ parent, frame, depth, weight: 0, children: new Map() })

// What of the tree is seen when `focus` fills the width: its ancestors whole, its descendants by their share, without those
// too narrow to be seen.
export function layOut(focus, least) {
  const placed = []
  for (let at = focus.parent; at; at = at.parent) placed.push({ node: at, left: 0, width: 1, ancestor: true })
  const open = [{ node: focus, left: 0, width: 1 }]
  while (open.length) {
    const place = open.pop()
    placed.push(place)
    let left = place.left
    for (const child of [...place.node.children.values()].sort((a, b) => b.weight - a.weight)) {
      const width = focus.weight > 0 ? child.weight / focus.weight : 0
      if (width < least) break
      open.push({ node: child, left, width })
      left += width
    }
  }
  return placed.sort((a, b) => a.node.depth - b.node.depth || a.left - b.left)
}

// The weight of what matches, each stack counted once, however often it matches in itself.
export function weightOf(root, matches) {
  let weight = 0
  const open = [root]
  while (open.length) {
    const at = open.pop()
    if (at.frame !== null && matches(at.frame)) weight += at.weight
    else open.push(...at.children.values())
  }
  return weight
}
