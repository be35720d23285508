/**
 * The log: JSON lines by pino. Traps: the destination holds lines back until enough have come, so it is flushed each
 * second and by `close()`; several processes on one pipe tear lines, so only one may write; pino's own redaction takes
 * fixed paths, while secrets are known by their names here, at any depth.
 */
import pino, { type DestinationStream } from 'pino'
import type {
  BackendEvent,
  DecisionEvent,
  Recorder,
  TokenEvent,
  TunnelEvent,
} from '../../contracts/recorder.ts'
import type { Clock } from '../../kernel/clock.ts'
import { compileCallLine, faultFacts, round } from './call-lines.ts'
import { LOG_LEVELS, type LogConfig } from '../config.ts'
import { cleanLine, redact } from './redact.ts'
import { LineQueue, type LineQueueParts } from './line-queue.ts'
import { openLogWriter } from './log-writer.ts'

/** Where lines go. `write` takes whole lines, never waits and never throws. */
export interface LogDestination extends DestinationStream {
  /** Writes what is held, and waits for nothing. */
  flush?(): void
  /** How many lines could not be kept, since the start. */
  readonly dropped?: number
  /** So many lines are missing here, which somebody else had to drop. */
  lose?(lines: number): void
  /** Writes what is held; resolves when it is written, after a second at most. */
  end?(): Promise<void>
}

/**
 * Standard output, written in pieces, by no library's destination: those hold without bound what nobody reads, give up
 * for good when a write fails, and end a process only when everything has been read (T5.11).
 */
export function standardOutput(gapLine: LineQueueParts['gapLine']): LogDestination {
  const queue = new LineQueue({ writer: openLogWriter(), gapLine })
  process.once('exit', () => queue.endNow())
  return queue
}

export interface Log extends Recorder {
  /** Hands on what is still held. */
  close(): void
}

export interface LogParts {
  readonly clock: Clock
  readonly destination: LogDestination
  /** By slot: how a call's action is named. */
  readonly actions: readonly { readonly area: string; readonly action: string }[]
}

const FLUSH_MS = 1000

/** Opens the log. */
export function openLog(config: LogConfig, { clock, destination: sink, actions }: LogParts): Log {
  const timestamp = timestamps(clock)
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
  const told: ReadonlySet<string> = new Set(LOG_LEVELS.slice(LOG_LEVELS.indexOf(config.level)))
  return {
    decision: (event) => {
      const level = levelOf(event)
      if (told.has(level) && wanted(event)) sink.write(callLine(event, level))
    },
    token: (event) => logger[event.fault?.row.level ?? 'info'](tokenLine(event), 'token'),
    backend: (event) => {
      if (told.has('debug')) logger.debug(backendLine(event), 'backend')
    },
    // The decision told that it opened.
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

/** The line that stands where lines were dropped (T5.11): told at every level, since nobody can count on the others. */
export const gapLine =
  (clock: Clock) =>
  (lines: number): string =>
    `{"level":"error","time":"${new Date(clock.now()).toISOString()}","lines":${lines},` +
    `"detail":"${lines} lines were dropped: the log could not be written","event":"log.lines_dropped"}\n`

/** Writing a date costs more than a call's decision: once a millisecond is enough. */
function timestamps(clock: Clock): () => string {
  let at = Number.NaN
  let text = ''
  return () => {
    const now = clock.now()
    if (now !== at) text = `,"time":"${new Date(now).toISOString()}"`
    at = now
    return text
  }
}

/** A client that leaves is nothing to tell, unless its call has reached a backend: then it may have been carried out. */
function levelOf({ fault, reported, upstreamMs }: DecisionEvent): LogConfig['level'] {
  if (fault === undefined && reported === undefined) return 'info'
  const level = (fault ?? reported?.fault)?.row.level ?? 'info'
  return level === 'debug' && upstreamMs !== undefined ? 'info' : level
}

/** Our own trouble is told even where calls are not. */
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

/** One recorder that tells several: the log and the metrics. */
export function fanOut(metrics: Omit<Recorder, 'note'>, log: Recorder): Recorder {
  return {
    decision: (event) => {
      metrics.decision(event)
      log.decision(event)
    },
    token: (event) => {
      metrics.token(event)
      log.token(event)
    },
    backend: (event) => {
      metrics.backend(event)
      log.backend(event)
    },
    tunnel: (event) => {
      metrics.tunnel?.(event)
      log.tunnel?.(event)
    },
    tokenCache: (outcome) => metrics.tokenCache(outcome),
    note: (level, event, facts) => log.note(level, event, facts),
  }
}

/** Passes on to whoever records at the moment: for those who live longer than one configuration. */
export class RelayRecorder implements Recorder {
  to: Recorder | undefined

  decision(event: Parameters<Recorder['decision']>[0]): void {
    this.to?.decision(event)
  }

  token(event: Parameters<Recorder['token']>[0]): void {
    this.to?.token(event)
  }

  backend(event: Parameters<Recorder['backend']>[0]): void {
    this.to?.backend(event)
  }

  tunnel(event: TunnelEvent): void {
    this.to?.tunnel?.(event)
  }

  tokenCache(outcome: 'hit' | 'miss'): void {
    this.to?.tokenCache(outcome)
  }

  note(...told: Parameters<Recorder['note']>): void {
    this.to?.note(...told)
  }
}
