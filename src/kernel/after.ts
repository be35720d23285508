/** Runs `work` once, `ms` milliseconds from now; what it answers cancels. Tests hand in one that they wind themselves. */
export type After = (ms: number, work: () => void) => () => void

/** Keeps no process alive. */
export const after: After = (ms, work) => {
  const timer = setTimeout(work, ms)
  timer.unref()
  return () => clearTimeout(timer)
}
