// Which frame of a stack tells what it was at. Stacks are places in the blame's frames, the leaf first.

// As Report::Behind has it: a line of the program that called Ruby's own and other people's code, or Headway's, says more.
const FOREIGN = /^<|\/gems\/|\/lib\/ruby\/|\/rubygems\/|\/lib\/headway\/(?!bench\/)/
// And of what it waits for another thread in, the library that calls it; concurrent-ruby's locks say no more.
const FOR_A_THREAD = /^(Thread::(Mutex|ConditionVariable|Queue|SizedQueue)|Monitor)#/
const LIBRARY = /\/gems\/(?!concurrent-ruby-[^/]+\/.*\/synchronization\/)/

// The frame of the program's own that was the last.
export function ownOf(stack, frames) {
  const filed = stack.filter((index) => frames[index]?.file && !frames[index].file.startsWith("<"))
  return filed.find((index) => !FOREIGN.test(frames[index].file)) ?? filed[0] ?? stack[0]
}

// What that called in the end.
export function leafOf(stack, own, frames) {
  if (!FOR_A_THREAD.test(frames[stack[0]]?.method)) return stack[0]
  return stack.slice(0, stack.indexOf(own)).find((index) => LIBRARY.test(frames[index]?.file ?? "")) ?? stack[0]
}

export const lineOf = (frame) => (frame.line ? `${frame.file}:${frame.line}` : (frame.file ?? ""))
