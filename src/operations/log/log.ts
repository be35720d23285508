/**
 * The log: JSON lines by pino. Traps: the destination holds lines back until enough have come, so it is flushed each
 * second and by `close()`; several processes on one pipe tear lines, so only one may write; pino's own redaction takes
 * fixed paths, while secrets are known by their names here, at any depth.
 */
import pino from 'pino'
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
import type { LogDestination } from './standard-output.ts'

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
