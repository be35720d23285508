import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { auditRecords, recordsOf } from '../../support/audit-files.ts'
import {
  actionOf,
  CREATE,
  DETAIL,
  eventsOf,
  JSON_BODY,
  LIST,
  NEW_FUND,
  recordsOfCall,
  withActions,
} from '../../support/audited-calls.ts'
import { eventually } from '../../support/eventually.ts'
import { replacedOver } from '../../support/over-module.ts'
import { openRaw, type RawResponse } from '../../support/raw-http.ts'
import { bearer, expectFault, requestBytes, send, type Sent } from '../../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import {
  answerJson,
  openUpstream,
  startUpstream,
  type Upstream,
  type UpstreamBehaviour,
} from '../../support/start-upstream.ts'
import { at } from '../../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import { closeOf, askWebsocket, startWebsocketUpstream } from '../../support/websocket-upstream.ts'

let upstream: Upstream
let gateway: StartedPostern
let token: string
beforeAll(async () => {
  upstream = await openUpstream()
  gateway = await startPostern({
    config: 'upstream.yaml',
    keeps: 'trail',
    environment: { UPSTREAM_URL: upstream.url },
    change: withActions(
      actionOf('becomes-post', { GET: { upstream: { method: 'POST' } } }),
      actionOf('sensitive', { GET: { audit: 'intent' } }),
      actionOf('search', {
        POST: { audit: 'none', auditReason: 'it only searches', body: { required: true } },
      }),
    ),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})
beforeEach(() => upstream.behave(answerJson({ ok: true })))

const ask = ({ headers, ...sent }: Sent): Promise<RawResponse> =>
  send(gateway, { ...sent, headers: { ...bearer(token), ...headers } })
const create: Sent = { method: 'POST', target: CREATE, headers: JSON_BODY, body: NEW_FUND }

describe('C12.1.1 a record of a call', () => {
  it.each<[string, Sent]>([
    ['a POST', create],
    ['a GET that its upstream is sent as a POST', { target: at('becomes-post') }],
    ['a GET of an operation with `audit: intent`', { target: at('sensitive') }],
    ['a HEAD of the same', { method: 'HEAD', target: at('sensitive') }],
  ])('C12.1.1 is made of %s', async (_what, sent) => {
    const answer = await ask(sent)
    expect(answer.status, answer.body).toBe(200)
    expect(eventsOf(recordsOfCall(gateway, answer))).toEqual(['call.intended', 'call.settled'])
  })

  it.each<[string, Sent]>([
    ['a GET', { target: LIST }],
    ['a HEAD', { method: 'HEAD', target: LIST }],
    [
      'a POST of an operation with `audit: none`',
      { method: 'POST', target: at('search'), headers: JSON_BODY, body: '{}' },
    ],
    ['a GET, without an upgrade, of an operation that takes websockets', { target: at('live/a') }],
  ])('C12.1.1 is not made of %s', async (_what, sent) => {
    const answer = await ask(sent)
    expect(answer.status, answer.body).toBe(200)
    expect(recordsOfCall(gateway, answer)).toEqual([])
  })
})

describe('C12.1.3 an intent', () => {
  it('C12.1.3 is durable before the upstream receives anything', async () => {
    const durable = Promise.withResolvers<number>()
    const require = vi.spyOn(gateway.world.audit, 'require').mockReturnValue(durable.promise)
    const count = upstream.requests.length
    const answer = ask(create)
    await eventually(() => expect(require).toHaveBeenCalled())
    expect(upstream.requests).toHaveLength(count)
    require.mockRestore()
    durable.resolve(1)
    expect((await answer).status).toBe(200)
    expect(upstream.requests).toHaveLength(count + 1)
  })

  it('C12.1.2 that cannot be kept refuses the change, which the upstream never sees; reads go on', async () => {
    vi.spyOn(gateway.world.audit, 'require').mockRejectedValueOnce(new Fault('audit_unavailable'))
    const count = upstream.requests.length
    const refused = await ask(create)
    expectFault(refused, 'audit_unavailable')
    expect(upstream.requests).toHaveLength(count)
    expect((await ask({ target: LIST })).status).toBe(200)
    expect(recordsOfCall(gateway, refused)).toMatchObject([
      { event: 'call.refused', outcome: 'refused', reason: 'audit_unavailable' },
    ])
  })

  it('C12.1.3 tells who calls what, and the trace', async () => {
    const trace = '0af7651916cd43dd8448eb211c80319c'
    const answer = await ask({
      ...create,
      headers: { ...JSON_BODY, traceparent: `00-${trace}-b7ad6b7169203331-01` },
    })
    const [intent, settled] = recordsOfCall(gateway, answer)
    const about = {
      traceId: trace,
      actor: { kind: 'user', subject: expect.any(String), client: 'acme-books' },
      on: { business: 'ACME', area: 'fund-data', action: 'fund-create', method: 'POST' },
    }
    expect(intent).toMatchObject({ ...about, outcome: 'pending', values: { 'actor.address': '127.0.0.1' } })
    expect(settled).toMatchObject({ ...about, intent: intent?.['seq'] })
    expect(JSON.stringify([intent, settled])).not.toContain(token.slice(-40))
  })
})

describe('C12.1.3 the outcome of a call', () => {
  const HTML: UpstreamBehaviour = (connection) =>
    connection.respond({ headers: { 'Content-Type': 'text/html' }, body: '<p>' })
  const OWN_ERROR = answerJson(
    { Errors: [{ Code: 'taken', Message: 'The code is taken' }], Data: {} },
    { status: 409 },
  )

  it.each<[string, UpstreamBehaviour, Record<string, unknown>, Record<string, unknown>]>([
    [
      'that succeeded',
      answerJson({}, { status: 201 }),
      { outcome: 'success' },
      { status: 201, upstreamStatus: 201 },
    ],
    ['that the upstream refused', OWN_ERROR, { outcome: 'refused' }, { status: 409 }],
    [
      'whose upstream answers something else',
      HTML,
      { outcome: 'failed', reason: 'outcome_unknown' },
      { upstreamStatus: 200 },
    ],
    [
      'whose upstream breaks off',
      (connection) => connection.reset(),
      { outcome: 'failed', reason: 'outcome_unknown' },
      { status: 500 },
    ],
    [
      'whose upstream is out of order',
      answerJson({}, { status: 503 }),
      { outcome: 'failed', reason: 'upstream_unavailable' },
      { status: 503 },
    ],
  ])('C12.1.3 %s is recorded once, with status and time', async (_what, behaviour, outcome, call) => {
    upstream.behave(behaviour)
    const answer = await ask(create)
    const records = recordsOfCall(gateway, answer)
    expect(eventsOf(records)).toEqual(['call.intended', 'call.settled'])
    expect(records[1]).toMatchObject({
      ...outcome,
      call: { status: answer.status, ...call, ms: expect.any(Number) },
    })
  })

  it('C12.1.3 is written before the first byte of the answer', async () => {
    const written = Promise.withResolvers<undefined>()
    const settle = vi.spyOn(gateway.world.audit, 'settle').mockReturnValue(written.promise)
    const connection = await openRaw(gateway.port)
    connection.send(requestBytes({ ...create, headers: { ...JSON_BODY, ...bearer(token) } }))
    await eventually(() => expect(settle).toHaveBeenCalledTimes(1))
    expect(connection.unread).toBe('')
    settle.mockRestore()
    written.resolve(undefined)
    expect((await connection.response()).status).toBe(200)
    connection.destroy()
  })

  it('C12.1.3 of an answer that cannot be converted tells what the upstream had said', async () => {
    upstream.behave(answerJson({ Name: '\u0000' }))
    const answer = await ask({ ...create, headers: { ...JSON_BODY, Accept: 'application/xml' } })
    expect(answer.status).toBe(500)
    expect(recordsOfCall(gateway, answer)[1]).toMatchObject({
      outcome: 'failed',
      reason: 'outcome_unknown',
      call: { status: 500, upstreamStatus: 200 },
    })
  })

  it('C12.1.3 is recorded though the client has left, and the call was cancelled', async () => {
    const arrived = Promise.withResolvers<undefined>()
    upstream.behave(() => arrived.resolve(undefined))
    const before = recordsOf(gateway, 'call.settled').length
    const connection = await openRaw(gateway.port)
    connection.send(requestBytes({ ...create, headers: { ...JSON_BODY, ...bearer(token) } }))
    await arrived.promise
    connection.destroy()
    await eventually(() => expect(recordsOf(gateway, 'call.settled')).toHaveLength(before + 1))
    expect(recordsOf(gateway, 'call.settled').at(-1)).toMatchObject({
      outcome: 'failed',
      reason: 'client_gone',
    })
  })

  it('C12.1.3 of a call that has no room at its backend is that it was refused; it is not sent', async () => {
    const { admission } = gateway.world
    vi.spyOn(admission, 'occupy').mockImplementationOnce(() => {
      throw new Fault('backend_busy')
    })
    const count = upstream.requests.length
    const answer = await ask(create)
    expectFault(answer, 'backend_busy')
    expect(upstream.requests).toHaveLength(count)
    const records = recordsOfCall(gateway, answer)
    expect(eventsOf(records)).toEqual(['call.intended', 'call.settled'])
    expect(records[1]).toMatchObject({ outcome: 'refused', reason: 'backend_busy' })
  })

  it('C12.1.3 is one for each intent, whatever becomes of the calls', async () => {
    const failing = await startUpstream()
    const service = await postern({
      config: 'upstream.yaml',
      keeps: 'trail',
      environment: { UPSTREAM_URL: failing.url },
    })
    const { access_token } = await issueToken(service, { scope: ALL_AT_ACME })
    const headers = { ...JSON_BODY, ...bearer(access_token) }
    for (const behaviour of [OWN_ERROR, HTML, answerJson({}), answerJson({}, { status: 500 })]) {
      failing.behave(behaviour)
      await Promise.all([1, 2, 3].map(() => send(service, { ...create, headers })))
      await send(service, { ...create, headers, body: '{' })
      await send(service, { ...create, headers: JSON_BODY })
    }
    const intents = recordsOf(service, 'call.intended').map(({ seq }) => Number(seq))
    const settled = recordsOf(service, 'call.settled').map(({ intent }) => Number(intent))
    expect(intents).toHaveLength(12)
    expect(new Set(settled)).toEqual(new Set(intents))
    expect(settled).toHaveLength(12)
    expect(recordsOf(service, 'call.refused')).toHaveLength(8)
  })

  it('C12.1.3 that cannot be written changes no answer', async () => {
    const change = { method: 'POST', target: DETAIL, headers: JSON_BODY, body: '{}' }
    const before = await ask(change)
    vi.spyOn(gateway.world.audit, 'settle').mockResolvedValueOnce()
    const after = await ask(change)
    expect([after.status, after.body]).toEqual([before.status, before.body])
    expect(eventsOf(recordsOfCall(gateway, after))).toEqual(['call.intended'])
  })
})

describe('C12.1.3 a call of which a module makes another', () => {
  const over = replacedOver()
  afterEach(() => vi.restoreAllMocks())
  const SENDS_TWO = `{ answer: async ({ forward }) => {
    const read = await forward()
    await forward({ method: 'POST', path: '/changed', body: { kind: 'none' } })
    return read
  } }`

  it('C12.1.3 has an intent before the module’s first request that is not safe, and an outcome', async () => {
    const { upstream: service, gateway: served, ask: read } = await over(SENDS_TWO)
    const require = vi.spyOn(served.world.audit, 'require')
    const seen: number[] = []
    service.behave((connection) => {
      seen.push(require.mock.results.length)
      answerJson({ ok: true })(connection)
    })
    const answer = await read({ target: LIST })
    expect(answer.status, answer.body).toBe(200)
    expect(service.requests.map(({ method }) => method)).toEqual(['GET', 'POST'])
    expect(seen).toEqual([0, 1])
    const records = recordsOfCall(served, answer)
    expect(eventsOf(records)).toEqual(['call.intended', 'call.settled'])
    expect(records[0]).toMatchObject({ on: { method: 'GET' }, change: { upstreamMethod: 'POST' } })
  })

  it('C12.1.3 does not reach the upstream with it if the intent cannot be kept', async () => {
    const { upstream: service, gateway: served, ask: read } = await over(SENDS_TWO)
    vi.spyOn(served.world.audit, 'require').mockRejectedValue(new Fault('audit_unavailable'))
    expectFault(await read({ target: LIST }), 'audit_unavailable')
    expect(service.requests.map(({ method }) => method)).toEqual(['GET'])
  })

  it('C12.1.3 has no record if the module sends what is safe only', async () => {
    const { gateway: served, ask: read } = await over('{ answer: (call) => call.forward() }')
    const answer = await read({ target: LIST })
    expect(answer.status).toBe(200)
    expect(recordsOfCall(served, answer)).toEqual([])
  })

  it('C12.1.3 is answered in its own way by a module that goes on without, and has no record', async () => {
    const {
      upstream: service,
      gateway: served,
      ask: read,
    } = await over(
      `{ answer: async ({ forward }) => {
        const failed = await forward({ method: 'DELETE' }).then(() => 'no', (error) => error.code)
        return { status: 200, body: { kind: 'value', value: { failed } } }
      } }`,
    )
    vi.spyOn(served.world.audit, 'require').mockRejectedValue(new Fault('audit_unavailable'))
    const answer = await read({ target: LIST })
    expect(JSON.parse(answer.body).Data).toEqual({ failed: 'audit_unavailable' })
    expect(service.requests).toEqual([])
    expect(recordsOfCall(served, answer)).toEqual([])
  })
})

describe('C12.1.3 a websocket', () => {
  const startSockets = async () => {
    const sockets = await startWebsocketUpstream()
    const service = await startPostern({
      config: 'upstream.yaml',
      keeps: 'trail',
      environment: { UPSTREAM_URL: sockets.url },
      change: withActions(),
    })
    const { access_token } = await issueToken(service, { scope: ALL_AT_ACME })
    const open = (target = at('live/a')) =>
      askWebsocket(`ws://127.0.0.1:${service.port}${target}`, { headers: bearer(access_token) })
    return { sockets, service, open }
  }

  it('C12.1.3 has an intent, a record when it is open and one when it ends, with its reason', async () => {
    const { service, sockets, open } = await startSockets()
    try {
      const asked = await open()
      if (asked.kind !== 'open') throw new Error(asked.body)
      await eventually(() => expect(recordsOf(service, 'tunnel.opened')).toHaveLength(1))
      const closed = closeOf(asked.socket)
      sockets.sockets[0]!.close(1000)
      await closed
      await eventually(() => expect(recordsOf(service, 'tunnel.closed')).toHaveLength(1))
      const records = auditRecords(service).filter(({ event }) => /^(?:call|tunnel)/.test(event))
      expect(eventsOf(records)).toEqual(['call.intended', 'tunnel.opened', 'tunnel.closed'])
      const { seq } = records[0]!
      expect(records[1]).toMatchObject({ intent: seq, outcome: 'success' })
      expect(records[2]).toMatchObject({ intent: seq, call: { ms: expect.any(Number) } })
      expect(records[0]).toMatchObject({ values: { 'on.params.room': 'a' } })
    } finally {
      await service.close()
    }
  })

  it('C12.1.3 is not asked for upstream before its intent is kept', async () => {
    const { service, sockets, open } = await startSockets()
    try {
      vi.spyOn(service.world.audit, 'require').mockRejectedValue(new Fault('audit_unavailable'))
      expect(await open()).toMatchObject({ kind: 'refused', status: 503 })
      expect([sockets.handshakes, sockets.requests]).toEqual([[], []])
    } finally {
      await service.close()
    }
  })

  it('C12.1.3 that the upstream refuses has its outcome like any call', async () => {
    upstream.behave(answerJson({ Errors: [{ Code: 'full', Message: 'Full' }], Data: {} }, { status: 409 }))
    const url = `ws://127.0.0.1:${gateway.port}${at('live/b')}`
    expect(await askWebsocket(url, { headers: bearer(token) })).toMatchObject({
      kind: 'refused',
      status: 409,
    })
    expect(recordsOf(gateway, 'call.settled').at(-1)).toMatchObject({
      outcome: 'refused',
      on: { action: 'live/{room}' },
      call: { status: 409, upstreamStatus: 409 },
    })
  })

  it('C12.1.3 tells that the end of the service ended it', async () => {
    const { service, open } = await startSockets()
    const note = vi.spyOn(service.world.audit, 'note')
    const asked = await open()
    if (asked.kind !== 'open') throw new Error(asked.body)
    await service.close()
    const closed = note.mock.calls.map(([entry]) => entry).filter(({ event }) => event === 'tunnel.closed')
    expect(closed).toMatchObject([{ reason: 'shutdown' }])
  })
})

describe('C12.2.3 path parameters', () => {
  it('C12.2.3 stand beside the record, which has a hash of each', async () => {
    const member = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'
    const target = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${member}`
    const answer = await ask({ method: 'POST', target, headers: JSON_BODY, body: '{"Status":"Active"}' })
    expect(answer.status, answer.body).toBe(200)
    const [intent] = recordsOfCall(gateway, answer)
    const { values, ...line } = intent!
    expect(values).toMatchObject({ 'on.params.memberId': member })
    expect(JSON.stringify(line)).not.toContain(member)
    expect(line).toMatchObject({
      on: { fund: 'SUPER1' },
      personal: { 'on.params.memberId': expect.any(String) },
    })
  })
})
