import type { Clock } from '../../base/kernel/clock.ts'

type EndSignal = (typeof END_SIGNALS)[number]

interface SignalSource {
  on(signal: EndSignal, listener: () => void): unknown
  off(signal: EndSignal, listener: () => void): unknown
}

interface DrainHandlers {
  /** The first signal: stop taking, finish what is in flight. */
  readonly drain: () => void
  /** A later one: end now. */
  readonly force: () => void
}

/** The service ends by these. */
const END_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const
/** The signals that the supervisor acts on. Workers get it too where it is sent to the process group. */
export const SUPERVISOR_SIGNALS = [...END_SIGNALS, 'SIGHUP', 'SIGUSR2'] as const

/** A signal to a process group arrives twice, once from the terminal or the manager and once from the parent (npm). */
export const SAME_SIGNAL_MS = 1000

/** Calls `drain` on the first signal, `force` on one later than SAME_SIGNAL_MS. Returns what stops listening. */
export function onSignals(source: SignalSource, clock: Clock, { drain, force }: DrainHandlers): () => void {
  let first: number | undefined
  const heard = (): void => {
    if (first === undefined) {
      first = clock.monotonic()
      drain()
    } else if (clock.monotonic() - first > SAME_SIGNAL_MS) force()
  }
  for (const signal of END_SIGNALS) source.on(signal, heard)
  return () => {
    for (const signal of END_SIGNALS) source.off(signal, heard)
  }
}
