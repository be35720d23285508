import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { auditRecords } from '../../support/audit-files.ts'
import {
  CREATE,
  DETAIL,
  eventsOf,
  JSON_BODY,
  LIST,
  NEW_FUND,
  recordsOfCall,
} from '../../support/audited-calls.ts'
import { bearer, send, type Sent } from '../../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { answerJson, openUpstream, type Upstream } from '../../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../../support/tokens.ts'

/** `fund-data` is introduced, `member-data` is in force. */
const introduced = (loaded: Configuration): Configuration => ({
  ...loaded,
  areas: { ...loaded.areas, 'fund-data': { backend: 'funds', mode: 'report-only' } },
})

let upstream: Upstream
let gateway: StartedPostern
let token: string
let readOnly: string
beforeAll(async () => {
  upstream = await openUpstream(answerJson({ ok: true }))
  gateway = await startPostern({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: introduced,
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  readOnly = (await issueToken(gateway, { scope: 'fund.read target:b/ACME' })).access_token
})
afterAll(async () => {
  await Promise.all([gateway.close(), upstream.close()])
})

const MEMBER_DETAIL = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`
const create: Sent = { method: 'POST', target: CREATE, headers: JSON_BODY, body: NEW_FUND }

describe('C12.1.5 a call that is refused', () => {
  it('C12.1.5 is recorded with its caller, its place and why', async () => {
    const sent = { method: 'POST', target: MEMBER_DETAIL, body: '{}' }
    const answer = await send(gateway, { ...sent, headers: { ...JSON_BODY, ...bearer(readOnly) } })
    expect(answer.status).toBe(401)
    expect(recordsOfCall(gateway, answer)).toMatchObject([
      {
        event: 'call.refused',
        outcome: 'refused',
        reason: 'insufficient_scope',
        actor: { kind: 'user', subject: expect.any(String), client: 'acme-books' },
        on: { business: 'ACME', fund: 'SUPER1', area: 'member-data', method: 'POST' },
        values: { 'actor.address': '127.0.0.1', 'on.params.memberId': MEMBER },
      },
    ])
  })

  it('C12.1.5 without a proven caller is of nobody', async () => {
    const answer = await send(gateway, { target: MEMBER_DETAIL, headers: bearer('not.a.token') })
    const [refused] = recordsOfCall(gateway, answer)
    expect(refused).toMatchObject({
      event: 'call.refused',
      reason: 'invalid_token',
      actor: { kind: 'anonymous' },
    })
    expect(JSON.stringify(refused)).not.toContain('not.a.token')
  })

  it('C12.1.5 has a record if its body is refused, and no intent', async () => {
    const sent = { method: 'POST', target: MEMBER_DETAIL, body: '{"Sta' }
    const answer = await send(gateway, { ...sent, headers: { ...JSON_BODY, ...bearer(token) } })
    expect(recordsOfCall(gateway, answer)).toMatchObject([
      { event: 'call.refused', reason: 'body_malformed' },
    ])
  })

  it('C12.1.5 is recorded ten times a minute without a token, and counted beyond', async () => {
    const service = await postern()
    for (let at = 0; at < 13; at++) await send(service, { target: LIST })
    const records = (): ReturnType<typeof auditRecords> =>
      auditRecords(service).filter(({ reason }) => reason === 'no_credentials')
    expect(records()).toHaveLength(10)
    const note = vi.spyOn(service.world.audit, 'note')
    const { data } = service
    await service.close()
    expect(data).toBeDefined()
    const suppressed = note.mock.calls
      .map(([entry]) => entry)
      .filter(({ event }) => event === 'audit.suppressed')
    expect(suppressed).toMatchObject([
      {
        reason: 'no_credentials',
        change: { count: 3, event: 'call.refused' },
        personal: { 'actor.address': '127.0.0.0/24' },
      },
    ])
  })
})

describe('C12.1.6 a change in a report-only area', () => {
  it('C12.1.6 names its caller as claimed, also where nothing would have been refused', async () => {
    const answer = await send(gateway, { ...create, headers: { ...JSON_BODY, ...bearer(token) } })
    expect(answer.status, answer.body).toBe(200)
    const records = recordsOfCall(gateway, answer)
    expect(eventsOf(records)).toEqual(['call.intended', 'call.settled'])
    for (const { actor, call } of records) {
      expect(actor).toEqual({ kind: 'user', client: 'acme-books', claimed: expect.any(String) })
      expect(call).not.toHaveProperty('wouldRefuse')
    }
  })

  it.each<[string, () => Partial<Sent>, object]>([
    ['insufficient_scope', () => ({ headers: { ...JSON_BODY, ...bearer(readOnly) } }), { kind: 'user' }],
    ['no_credentials', () => ({ headers: JSON_BODY }), { kind: 'anonymous' }],
    [
      'body_malformed',
      () => ({ headers: { ...JSON_BODY, ...bearer(token) }, body: '{"a' }),
      { kind: 'user' },
    ],
  ])('C12.1.6 that would have been refused tells why: %s', async (wouldRefuse, sent, actor) => {
    const answer = await send(gateway, { ...create, ...sent() })
    expect(answer.status, answer.body).toBe(200)
    const records = recordsOfCall(gateway, answer).filter(({ event }) => event !== 'call.body_ended')
    expect(records).toMatchObject([
      { event: 'call.intended', actor, call: { wouldRefuse } },
      { event: 'call.settled', outcome: 'success', actor, call: { status: 200, wouldRefuse } },
    ])
  })

  it('C12.1.6 goes on where the trail cannot keep its intent; the log tells', async () => {
    vi.spyOn(gateway.world.audit, 'require').mockRejectedValueOnce(new Fault('audit_unavailable'))
    const count = upstream.requests.length
    const answer = await send(gateway, { ...create, headers: { ...JSON_BODY, ...bearer(token) } })
    expect([answer.status, upstream.requests.length]).toEqual([200, count + 1])
    expect(recordsOfCall(gateway, answer)).toEqual([])
    expect(gateway.log()).toContainEqual(
      expect.objectContaining({ event: 'call_not_recorded', requestId: answer.headers['x-request-id'] }),
    )
  })

  it('C12.1.6 is recorded too if the configuration has no such action', async () => {
    const answer = await send(gateway, { method: 'DELETE', target: DETAIL, headers: bearer(token) })
    expect(recordsOfCall(gateway, answer)[0]).toMatchObject({
      event: 'call.intended',
      on: { area: 'fund-data', method: 'DELETE' },
      call: { wouldRefuse: 'method_not_allowed' },
    })
  })

  it('C12.1.6 leaves no record of a read', async () => {
    const answer = await send(gateway, { target: LIST })
    expect(answer.status).toBe(200)
    expect(recordsOfCall(gateway, answer)).toEqual([])
  })
})
