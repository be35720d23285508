import { type PieceSource, readableOf, StreamInPieces } from '../../../src/base/http/body/pieces.ts'
import { type Duplex, PassThrough, Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import type {
  BackendAnswer,
  BackendUpgrade,
  Call,
  Tunnel,
} from '../../../src/base/contracts/calls/backend.ts'
import type { Exchange } from '../../../src/base/contracts/calls/exchange.ts'
import type { BackendEvent } from '../../../src/base/contracts/records/recorder.ts'
import { carryOut, carryUpgrade } from '../../../src/gateway/decide/carry-out.ts'
import { decide, type Decision, Findings } from '../../../src/gateway/decide/pipeline.ts'
import { decideReportOnly } from '../../../src/gateway/decide/report-only.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { PRINCIPAL } from '../../support/calls.ts'
import { exchangeOf, FUND_LIST, type GatewayParts, jsonAnswer, makeGateway } from '../../support/gateway.ts'

interface Parts {
  readonly answer?: (call: Call) => Promise<BackendAnswer>
  readonly upgrade?: BackendUpgrade['take']
  readonly requestHeaders?: ReadonlySet<string>
  /** Refuses calls that are counted for a client. */
  readonly isClientBusy?: boolean
  readonly reportOnly?: boolean
  readonly audit?: () => Promise<number>
}

/** Carries out a call of the fund list, and notes what it leaves behind. */
function carrying(wanted: Parts) {
  const { answer, upgrade, requestHeaders, isClientBusy = false, reportOnly = false, audit } = wanted
  const backendEvents: BackendEvent[] = []
  const notes: unknown[] = []
  const slots: (string | undefined)[] = []
  let released = 0
  const parts: GatewayParts = {
    ...(reportOnly && { areas: { 'fund-data': { backend: 'funds', mode: 'report-only' } } }),
    backend: {
      ...(answer && { answer }),
      ...(upgrade && { upgrade: { isAsked: () => true, take: upgrade } }),
      ...(requestHeaders && { requestHeaders }),
    },
    admission: {
      admit: () => undefined,
      occupy: (_backend, client) => {
        if (isClientBusy && client !== undefined) throw new Fault('too_many_backend_calls')
        slots.push(client)
        return () => (released += 1)
      },
    },
  }
  const gateway = makeGateway(parts)
  const runtime = {
    ...gateway.runtime,
    ...(audit && { audit: { ...NO_TRAIL, on: true, require: audit } }),
    recorder: {
      ...gateway.runtime.recorder,
      backend: (event: BackendEvent) => backendEvents.push(event),
      note: (...note: unknown[]) => notes.push(note),
    },
  }
  const findings = new Findings()
  const decided = (exchange: Exchange): Decision => {
    const decision = (
      reportOnly
        ? decideReportOnly(runtime, exchange, findings, 'fund-data', PRINCIPAL)
        : decide(runtime, exchange, findings, PRINCIPAL)
    ) as Decision
    const { operation } = decision
    const rule = audit && ({ calls: 'each', fields: [] } as const)
    return { ...decision, operation: { ...operation, audit: rule } }
  }
  const carry = (exchange = exchangeOf(FUND_LIST)) => carryOut(runtime, exchange, decided(exchange), findings)
  const switchOver = (exchange: Exchange) => {
    const decision = decided(exchange)
    const operation = { ...decision.operation, upgrade: true }
    return carryUpgrade(runtime, exchange, { ...decision, operation }, findings)
  }
  const { clock, calls } = gateway
  return { carry, switchOver, clock, calls, findings, backendEvents, notes, slots, released: () => released }
}

const streaming = (stream: Readable): BackendAnswer => ({
  status: 200,
  headers: {},
  body: {
    kind: 'stream',
    pieces: new StreamInPieces(stream),
    contentType: 'application/json',
    length: undefined,
  },
})

describe('C8 a call of a backend', () => {
  it('is recorded with its outcome and its duration', async () => {
    const { carry, clock, findings, backendEvents } = carrying({
      answer: () => {
        clock.advance(70)
        return Promise.resolve({ ...jsonAnswer('{}'), status: 201 })
      },
    })
    expect((await carry()).status).toBe(201)
    expect(backendEvents).toEqual([{ backend: 'funds', outcome: 'answered', ms: 70 }])
    expect(findings).toMatchObject({ upstreamStatus: 201, upstreamMs: 70 })
  })

  it.each([
    ['rejects', () => Promise.reject(new Fault('upstream_timeout'))],
    [
      'throws',
      () => {
        throw new Fault('upstream_timeout')
      },
    ],
  ])('C8.4 is recorded with its fault if the backend %s, and is in flight no more', async (_how, answer) => {
    const { carry, findings, backendEvents, released } = carrying({ answer })
    await expect(Promise.resolve().then(() => carry())).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(backendEvents).toEqual([{ backend: 'funds', outcome: 'upstream_timeout', ms: 0 }])
    expect([released(), findings.upstreamStatus]).toEqual([1, undefined])
  })

  it('C12.1.3 is not made before the audit trail holds it, nor if the trail cannot be written', async () => {
    const written = Promise.withResolvers<number>()
    const { carry, calls } = carrying({ audit: () => written.promise })
    const answer = carry()
    await turn()
    expect(calls).toEqual([])
    written.resolve(1)
    await answer
    expect(calls).toHaveLength(1)
    const failing = carrying({ audit: () => Promise.reject(new Fault('audit_unavailable')) })
    await expect(failing.carry()).rejects.toMatchObject({ code: 'audit_unavailable' })
    expect(failing.calls).toEqual([])
  })
})

describe('C4.5 a call in flight', () => {
  it('ends with a whole answer', async () => {
    const { carry, slots, released } = carrying({})
    await carry()
    expect([slots, released()]).toEqual([['client-1'], 1])
  })

  it('lasts until a streamed answer is closed', async () => {
    const stream = new PassThrough()
    const { carry, released } = carrying({ answer: () => Promise.resolve(streaming(stream)) })
    const { body } = await carry()
    expect(released()).toBe(0)
    readableOf(body as PieceSource).resume()
    stream.destroy()
    await turn()
    expect(released()).toBe(1)
  })

  it('lasts at most until its exchange has ended', async () => {
    const ends: (() => void)[] = []
    const { carry, released } = carrying({ answer: () => Promise.resolve(streaming(new PassThrough())) })
    await carry(exchangeOf(FUND_LIST, { onEnd: (listener) => void ends.push(listener) }))
    expect(released()).toBe(0)
    for (const end of ends) end()
    expect(released()).toBe(1)
  })

  it('over the limit of its client is refused, and only reported in a report-only area', async () => {
    const refused = carrying({ isClientBusy: true })
    expect(() => refused.carry()).toThrow(expect.objectContaining({ code: 'too_many_backend_calls' }))
    const { carry, slots, findings } = carrying({ isClientBusy: true, reportOnly: true })
    await carry()
    expect(slots).toEqual([undefined])
    expect(findings.observation?.fault?.code).toBe('too_many_backend_calls')
  })
})

describe('C8.4 a streamed answer that breaks off', () => {
  const cutBy = async (reason: Error): Promise<readonly unknown[]> => {
    const stream = new PassThrough()
    const { carry, notes } = carrying({ answer: () => Promise.resolve(streaming(stream)) })
    const { body } = await carry()
    const read = readableOf(body as PieceSource).resume()
    stream.write('{"a":')
    stream.destroy(reason)
    await new Promise((resolve) => read.once('close', resolve))
    return notes
  }

  it('C8.4 is told in the log', async () => {
    const facts = { backend: 'funds', reason: 'upstream_timeout', detail: 'late' }
    expect(await cutBy(new Fault('upstream_timeout', { detail: 'late' }))).toEqual([
      ['warn', 'answer_cut', expect.objectContaining(facts)],
    ])
  })

  it('C8.4 is not told if it was the client that left', async () => {
    expect(await cutBy(new Fault('client_gone'))).toEqual([])
  })

  it('C8.4 a whole answer is watched by nobody', async () => {
    const { carry, notes } = carrying({})
    expect((await carry()).body).not.toBeInstanceOf(Readable)
    expect(notes).toEqual([])
  })
})

describe('C8.2 the trace of a call', () => {
  const sent = async (traceparent?: string): Promise<readonly string[]> => {
    const { carry, calls } = carrying({})
    await carry(exchangeOf(FUND_LIST, { headers: traceparent === undefined ? {} : { traceparent } }))
    return calls[0]!.traceparent.split('-')
  }
  const TRACE = '0af7651916cd43dd8448eb211c80319c'
  const SPAN = 'b7ad6b7169203331'

  it('C8.2 goes on with a span of ours', async () => {
    const [version, trace, span, flags] = await sent(`00-${TRACE}-${SPAN}-01`)
    expect([version, trace, flags]).toEqual(['00', TRACE, '01'])
    expect(span).toMatch(/^[0-9a-f]{16}$/)
    expect(span).not.toBe(SPAN)
  })

  it.each([
    ['missing', undefined],
    ['malformed', `00-${TRACE}-${SPAN}`],
    ['of no version', `ff-${TRACE}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ])('C8.2 begins anew if it is %s', async (_what, traceparent) => {
    const [version, trace, span, flags] = await sent(traceparent)
    expect([version, flags]).toEqual(['00', '00'])
    expect(trace).toMatch(/^(?!0{32})[0-9a-f]{32}$/)
    expect(trace).not.toBe(TRACE)
    expect(span).toMatch(/^(?!0{16})[0-9a-f]{16}$/)
  })
})

describe('T2.5 an upgrade', () => {
  const socket = new PassThrough() as Duplex
  const upgrading = (): Exchange =>
    exchangeOf(FUND_LIST, {
      headers: { 'sec-websocket-protocol': 'a' },
      upgrade: { socket, head: Buffer.alloc(0) } as unknown as NonNullable<Exchange['upgrade']>,
    })
  const tunnelOf = (): { tunnel: Tunnel; end: () => void } => {
    const listeners: (() => void)[] = []
    return {
      tunnel: {
        endsWithToken: true,
        close: () => undefined,
        onEnd: (listener) => void listeners.push(() => listener('closed')),
      },
      end: () => {
        for (const listener of listeners) listener()
      },
    }
  }

  it('C4.5 is in flight for as long as its tunnel is open', async () => {
    const { tunnel, end } = tunnelOf()
    const { switchOver, findings, backendEvents, released } = carrying({
      upgrade: () => Promise.resolve({ kind: 'open', tunnel }),
    })
    expect(await switchOver(upgrading())).toMatchObject({ status: 101, tunnel })
    expect([findings.upstreamStatus, released()]).toEqual([101, 0])
    expect(backendEvents).toEqual([{ backend: 'funds', outcome: 'answered', ms: 0 }])
    end()
    expect(released()).toBe(1)
  })

  it('C8.4 that the upstream refuses is a plain answer with its status, and in flight no more', async () => {
    const answer: BackendAnswer = { status: 409, headers: {}, body: { kind: 'errors', errors: [] } }
    const { switchOver, findings, released } = carrying({
      upgrade: () => Promise.resolve({ kind: 'refused', answer }),
    })
    const { status, tunnel } = await switchOver(upgrading())
    expect([status, tunnel, findings.upstreamStatus, released()]).toEqual([409, undefined, 409, 1])
  })

  it('C8.4 that fails is recorded with its fault and its duration, and in flight no more', async () => {
    const { switchOver, clock, findings, backendEvents, released } = carrying({
      upgrade: () => {
        clock.advance(50)
        return Promise.reject(new Fault('upstream_unreachable'))
      },
    })
    await expect(switchOver(upgrading())).rejects.toMatchObject({ code: 'upstream_unreachable' })
    expect(backendEvents).toEqual([{ backend: 'funds', outcome: 'upstream_unreachable', ms: 50 }])
    expect([findings.upstreamMs, released()]).toEqual([50, 1])
  })

  it('T2.5 is ignored where the connection was not kept for one: the call is answered plainly', async () => {
    const { switchOver, calls } = carrying({ upgrade: () => Promise.reject(new Error('not asked')) })
    expect((await switchOver(exchangeOf(FUND_LIST))).status).toBe(200)
    expect(calls).toHaveLength(1)
  })

  it('C8.2 only an upgrade takes the headers of a websocket along where those that pass are listed', async () => {
    const asked: Call[] = []
    const { switchOver, carry, calls } = carrying({
      requestHeaders: new Set(),
      upgrade: (call) => {
        asked.push(call)
        return Promise.resolve({ kind: 'open', tunnel: tunnelOf().tunnel })
      },
    })
    await switchOver(upgrading())
    await carry(exchangeOf(FUND_LIST, { headers: { 'sec-websocket-protocol': 'a' } }))
    const names = [...asked, ...calls].map(({ headers }) => Object.keys(headers))
    expect(names).toEqual([['sec-websocket-protocol'], []])
  })
})
