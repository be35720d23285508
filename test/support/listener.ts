import { atEnd } from './shared.ts'
import type { EarlyAdmission } from '../../src/base/contracts/calls/admission.ts'
import type { Answer, Door, Exchange } from '../../src/base/contracts/calls/exchange.ts'
import type { DecisionEvent, Recorder } from '../../src/base/contracts/records/recorder.ts'
import { compileNegotiation } from '../../src/base/http/head/accept.ts'
import { compileAuthorities } from '../../src/base/http/head/request-target.ts'
import { compileTrustedProxies } from '../../src/base/http/head/addresses.ts'
import { readBody } from '../../src/base/http/body/read-body.ts'
import { Fault, toFault } from '../../src/base/kernel/faults.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import type { ServerConfig } from '../../src/gateway/server/schema.ts'
import type { ConnectionLimit } from '../../src/gateway/server/connection-limit.ts'
import { bindPublicListener, type PublicListener } from '../../src/gateway/server/public-listener.ts'

/** A recorder that keeps what it is told. */
export interface KeptEvents extends Recorder {
  readonly decisions: DecisionEvent[]
  readonly notes: { level: string; event: string; facts: unknown }[]
}

export function keepEvents(): KeptEvents {
  const decisions: DecisionEvent[] = []
  const notes: KeptEvents['notes'] = []
  return {
    decisions,
    notes,
    decision: (event) => decisions.push(event),
    token: () => undefined,
    backend: () => undefined,
    tokenCache: () => undefined,
    note: (level, event, facts) => notes.push({ level, event, facts }),
  }
}

export const SERVER_DEFAULTS: ServerConfig = {
  listen: '127.0.0.1:0',
  limits: {
    target: 8192,
    headers: 16384,
    headerCount: 100,
    body: 1024 ** 2,
    answer: 16 * 1024 ** 2,
    bodyRate: 1024,
  },
  timeouts: {
    headers: 8000,
    request: 8000,
    write: 30_000,
    keepAlive: 65_000,
    lameDuck: 0,
    silence: 0,
    drain: 5000,
  },
  trustedProxies: [],
  forwardingHeader: 'x-forwarded-for',
  strictHeaderNames: false,
  resourceMetadata: false,
  outbound: { allow: [] },
}

export interface TestListener {
  readonly port: number
  readonly events: KeptEvents
  /** The exchanges that reached the door, in order. */
  readonly seen: Exchange[]
  readonly listener: PublicListener
}

const negotiation = compileNegotiation({ vendor: 'postern', defaultFormat: 'json' })

/** Renders a fault simply, but in the format that C2.4 asks for. */
export function renderSimply(fault: Fault, accept: string | readonly string[] | undefined): Answer {
  const format = negotiation.formatOfErrors(accept)
  const headers: Record<string, string> = { 'Content-Type': `application/${format}; charset=utf-8` }
  if (fault.facts.allow) headers.Allow = fault.facts.allow.join(', ')
  const { wire } = fault.row
  const json = JSON.stringify({ Errors: [{ Code: wire, Message: fault.publicText }], Data: {} })
  return { status: fault.status, headers, body: format === 'json' ? json : `<Code>${wire}</Code>` }
}

/** Faults of the head are answered, bodies are read and echoed. */
export const echoDoor: Door = async (exchange) => {
  try {
    if (exchange.target instanceof Fault) throw exchange.target
    const body = await readBody(exchange.body, 1024 ** 2)
    const headers = { 'Content-Type': 'text/plain' }
    return {
      status: 200,
      headers,
      body: `${exchange.head.method} ${exchange.target.path} ${body.toString()}`,
    }
  } catch (thrown) {
    return renderSimply(toFault(thrown), exchange.head.headers.accept)
  }
}

/** The public listener before a door of one's own; closed when the test ends. */
export async function startListener(
  door: Door = echoDoor,
  overrides: Partial<Omit<ServerConfig, 'limits' | 'timeouts'>> & {
    limits?: Partial<ServerConfig['limits']>
    timeouts?: Partial<ServerConfig['timeouts']>
    identity?: Door
    earlyAdmission?: EarlyAdmission
    connectionLimit?: ConnectionLimit
    takesUpgrade?: () => boolean
  } = {},
): Promise<TestListener> {
  const { identity, earlyAdmission, connectionLimit, takesUpgrade, limits, timeouts, ...rest } = overrides
  const config: ServerConfig = {
    ...SERVER_DEFAULTS,
    ...rest,
    limits: { ...SERVER_DEFAULTS.limits, ...limits },
    timeouts: { ...SERVER_DEFAULTS.timeouts, ...timeouts },
  }
  const events = keepEvents()
  const seen: Exchange[] = []
  const trustedProxies = compileTrustedProxies(config.trustedProxies)
  const listener = await bindPublicListener({
    config,
    trustedProxies,
    recorder: events,
    clock: systemClock,
    ...(earlyAdmission && { earlyAdmission }),
    ...(connectionLimit && { connectionLimit }),
  })
  const url = `http://127.0.0.1:${listener.port}`
  const watched: Door = (exchange) => {
    seen.push(exchange)
    return door(exchange)
  }
  listener.open({
    doors: { api: watched, description: watched, identity },
    authorities: compileAuthorities([url]),
    renderFault: renderSimply,
    ...(takesUpgrade && { takesUpgrade }),
  })
  atEnd(async () => {
    await listener.close()
  })
  return { port: listener.port, events, seen, listener }
}
