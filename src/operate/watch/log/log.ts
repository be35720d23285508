/**
 * The log: JSON Lines by pino. Traps:
 * - The destination writes by the chunk, so it is flushed each second and by `close()`.
 * - Several processes that write to one pipe tear lines, so only one process may write.
 * - pino redacts fixed paths. Here a secret is recognised by its name, at any depth.
 */
import pino, { type DestinationStream } from 'pino'
import type {
  BackendEvent,
  DecisionEvent,
  Recorder,
  TokenEvent,
  TunnelEvent,
} from '../../../base/contracts/records/recorder.ts'
import { cleanLine } from '../../../base/kernel/clean-text.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { LOG_LEVELS, type LogConfig } from '../schema.ts'
import { compileCallLine, faultFacts, round } from './call-lines.ts'
import { type GapLine, LineQueue, openLogWriter } from './line-queue.ts'
import { redact } from './redact.ts'

/** Where lines go. `write` takes whole lines, never waits and never throws. */
export interface LogDestination extends DestinationStream {
  /** Begins to write everything that waits. */
  flush?(): void
  readonly dropped?: number
  /** Why lines do not arrive; undefined if they do. */
  readonly trouble?: string | undefined
  /** Counts lines as missing at this position, which another process dropped. */
  lose?(lines: number): void
}

/**
 * Standard output, written in chunks by our own queue (T5.11). That of pino, sonic-boom, writes to a file either in the event
 * loop, which a disk that hangs then stops, or in a thread, and then lines are out of order where the process ends. Its
 * `flushSync` waits without end while the disk is full, and writes a part twice to a full pipe. pino's destination stops
 * permanently when its reader has gone.
 */
export function standardOutput(gapLine: GapLine): LogDestination {
  const queue = new LineQueue(openLogWriter(), gapLine)
  process.once('exit', () => queue.endNow())
  return queue
}

export interface Log extends Recorder {
  /** Flushes the destination and stops the timer. */
  close(): void
}

const FLUSH_MS = 1000

export function openLog(
  config: LogConfig,
  {
    clock,
    destination: sink,
    actions,
    node,
  }: {
    readonly clock: Clock
    readonly destination: LogDestination
    /** The area and name of each action, by the slot of decision events. */
    readonly actions: readonly { readonly area: string; readonly action: string }[]
    /** The name of this node, where several share a store: a member of each line. */
    readonly node?: string | undefined
  },
): Log {
  const timestamp = timestamps(clock, node)
  const logger = pino(
    {
      level: config.level,
      base: null,
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
      messageKey: 'event',
      hooks: { streamWrite: cleanLine },
    },
    sink,
  )
  const timer = setInterval(() => sink.flush?.(), FLUSH_MS).unref()
  const wanted = CALLS[config.calls]
  const callLine = compileCallLine({ actions, clientAddress: config.clientAddress, timestamp })
  const loggedLevels: ReadonlySet<string> = new Set(LOG_LEVELS.slice(LOG_LEVELS.indexOf(config.level)))
  return {
    decision: (event) => {
      const level = levelOf(event)
      if (loggedLevels.has(level) && wanted(event)) sink.write(callLine(event, level))
    },
    token: (event) => logger[event.fault?.row.level ?? 'info'](tokenLine(event), 'token'),
    backend: (event) => {
      if (loggedLevels.has('debug')) logger.debug(backendLine(event), 'backend')
    },
    // The line of the call says that it opened.
    tunnel: (event) => {
      if (event.end !== undefined) logger.info(tunnelLine(event), 'tunnel')
    },
    tokenCache: () => undefined,
    note: (level, event, facts) => logger[level](redact(facts ?? {}), event),
    close: () => {
      clearInterval(timer)
      sink.flush?.()
    },
  }
}

/** Takes whole lines of a process that serves. `lost`: the number of lines that it dropped before them. */
export const linesTo =
  (sink: LogDestination) =>
  (text: string, lost: number): void => {
    if (lost > 0) sink.lose?.(lost)
    sink.write(text)
  }

/** The line in the place of dropped lines (T5.11). It is written at every log level: it says that the log is incomplete. */
export const gapLine =
  (clock: Clock) =>
  (lines: number): string =>
    `{"level":"error","time":"${new Date(clock.now()).toISOString()}","lines":${lines},` +
    `"detail":"${lines} lines were dropped: the log could not be written","event":"log.lines_dropped"}\n`

/** The date is formatted once a millisecond: formatting it costs more than the decision about a call. */
function timestamps(clock: Clock, node: string | undefined): () => string {
  const rest = node === undefined ? '' : `,"node":${JSON.stringify(node)}`
  let at = Number.NaN
  let text = ''
  return () => {
    const now = clock.now()
    if (now !== at) text = `,"time":"${new Date(now).toISOString()}"${rest}`
    at = now
    return text
  }
}

/** A client that leaves is logged at `debug`, unless its call reached a backend: the call may have been carried out. */
function levelOf({ fault, reported, upstreamMs }: DecisionEvent): LogConfig['level'] {
  if (fault === undefined && reported === undefined) return 'info'
  const level = (fault ?? reported?.fault)?.row.level ?? 'info'
  return level === 'debug' && upstreamMs !== undefined ? 'info' : level
}

/** Faults of the service itself are logged even if calls are not. */
const isTrouble = ({ fault }: DecisionEvent): boolean => fault?.row.level === 'error'

const CALLS: Readonly<Record<LogConfig['calls'], (event: DecisionEvent) => boolean>> = {
  all: () => true,
  refused: ({ fault, reported }) => fault !== undefined || reported !== undefined,
  none: isTrouble,
}

type Line = Record<string, unknown>

function tokenLine({ exchange, grant, result, client, subject, business, fund, fault }: TokenEvent): Line {
  return {
    requestId: exchange.id,
    grant,
    result,
    client,
    subject,
    business,
    fund,
    reason: fault?.code,
    ...(fault && faultFacts(fault)),
  }
}

const backendLine = ({ backend, outcome, ms }: BackendEvent): Line => ({ backend, outcome, ms: round(ms) })

const tunnelLine = ({ exchange, backend, end, ms }: TunnelEvent): Line => ({
  requestId: exchange.id,
  backend,
  end,
  ms: round(ms),
})
