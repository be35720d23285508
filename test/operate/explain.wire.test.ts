import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BACKEND_CHECK, CHECKS } from '../../src/gateway/decide/order.ts'
import { revoke } from '../../src/operate/revoke/revoke.ts'
import type { ClaimedCaller } from '../../src/base/contracts/people/claimed-callers.ts'
import type { ExplainedCheck, Explanation } from '../../src/base/contracts/calls/explanation.ts'
import { expectExplained, explain } from '../support/explained.ts'
import { movableClock, type MovableClock } from '../support/movable-clock.ts'
import { bearer, send, type Sent } from '../support/requests.ts'
import { postern, startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST: Sent = { target: '/api/1.0/b/ACME/fund-data/fund-list' }
const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'

let gateway: StartedPostern
let clock: MovableClock
let good: string

beforeAll(async () => {
  clock = movableClock(Date.parse('2026-03-10T10:00:00Z'))
  gateway = await startPostern({ keeps: 'nothing', clock })
  good = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(() => gateway.close())

const checkOf = ({ checks }: Explanation, clause: string): ExplainedCheck =>
  checks.find((check) => check.clause === clause)!

const alice = (more: Partial<ClaimedCaller> = {}): ClaimedCaller => ({
  ...{ client: 'acme-books', user: 'alice', target: 'b/ACME', scope: undefined },
  ...more,
})

const asCaller = (caller: ClaimedCaller, sent: Sent = LIST): Promise<Explanation> =>
  explain(gateway, sent, { caller })

describe('C14.1 a call that is described', () => {
  it('C14.1 is let in or refused as the call itself is, and asks no backend', async () => {
    const sent = { ...LIST, headers: bearer(good) }
    expect(await send(gateway, sent)).toMatchObject({ status: 200 })
    const explanation = await expectExplained(gateway, sent, undefined)
    expect(explanation.action).toMatchObject({ area: 'fund-data', action: 'fund-list', backend: 'sample' })
    expect(explanation.caller).toMatchObject({ client: 'acme-books', target: 'b/ACME', by: 'token' })
  })

  it('C14.1 takes the token by itself, and repeats no piece of it', async () => {
    const explanation = await explain(gateway, LIST, { token: good })
    expect(explanation.outcome).toBe('let in')
    const [header = '', payload = '', signature = ''] = good.split('.')
    for (const part of [header, payload, signature]) expect(JSON.stringify(explanation)).not.toContain(part)
  })

  it('C14.1 takes a client and a user in place of a token, as the token endpoint would grant it', async () => {
    const explanation = await asCaller(alice())
    const issued = await issueToken(gateway, {
      scope: gateway.configuration.directory.clients['acme-books']!.defaultScope ?? '',
    })
    expect(explanation).toMatchObject({ outcome: 'let in', caller: { by: 'claimed', scope: issued.scope } })
  })

  it.each([
    ['no such client', alice({ client: 'nobody' }), 'invalid_client'],
    ['no such user', alice({ user: 'nobody' }), 'invalid_grant'],
    ['a user of no business there', alice({ user: 'bob' }), 'invalid_scope'],
    ['another target than the client has', alice({ target: 'b/INITECH' }), 'invalid_scope'],
    ['a scope value that does not exist', alice({ scope: 'nothing.at.all' }), 'invalid_scope'],
    ['a client that alice cannot use', alice({ client: 'globex-ledger' }), 'invalid_grant'],
  ])('C14.1 says why no token would be granted: %s', async (_case, caller, reason) => {
    const explanation = await asCaller(caller)
    expect(explanation).toMatchObject({ outcome: 'refused', refusal: { clause: 'C4.4', reason } })
    expect(checkOf(explanation, 'C4.4').words).toContain('No such token can be had')
  })

  it('C14.1 takes a path with bytes outside ASCII for none, as the parser does', async () => {
    const explanation = await explain(gateway, { target: '/api/1.0/b/ACM\u00c9/fund-data/fund-list' })
    expect(explanation.refusal).toMatchObject({ clause: 'C4.1', reason: 'unreadable_request', status: 400 })
  })

  it('C14.1 explains no identity endpoint', async () => {
    expect(await explain(gateway, { target: '/connect/token', method: 'POST' })).toMatchObject({
      outcome: 'unknown',
      kind: 'identity',
      checks: [],
    })
  })
})

describe('C14.2 the checks', () => {
  it('C14.2 go on behind the first failure, by what a refused token claims', async () => {
    const poor = (await issueToken(gateway, { scope: 'profile api1 target:b/ACME' })).access_token
    const forged = `${poor.slice(0, -4)}AAAA`
    const { checks, refusal, caller } = await explain(
      gateway,
      { target: '/api/1.0/f/GLOBEX/GROWTH/fund-data/fund-detail' },
      { token: forged },
    )
    expect(refusal).toMatchObject({ clause: 'C4.4', reason: 'invalid_token', status: 401 })
    expect(caller?.by).toBe('refused token')
    expect(checks.map(({ clause, verdict, wouldFailToo }) => [clause, verdict, wouldFailToo])).toEqual([
      ['C4.1', 'passed', false],
      ['C4.2', 'passed', false],
      ['C4.3', 'passed', false],
      ['C4.4', 'failed', false],
      ['C4.4a', 'not reached', false],
      ['C4.5', 'passed', false],
      ['C4.6', 'passed', false],
      ['C4.7', 'failed', true],
      ['C4.8', 'failed', true],
      ['C4.9', 'passed', false],
      ['C4.10', 'passed', false],
      ['C4.11', 'passed', false],
      ['C4.11', 'passed', false],
      ['C4.5', 'passed', false],
    ])
  })

  it('C14.2 are those of C4 in its order, and that of the backend behind them', async () => {
    const { checks } = await explain(gateway, LIST, { token: good })
    expect(checks.map(({ clause, title }) => ({ clause, title }))).toEqual(
      [...CHECKS, BACKEND_CHECK].map(({ clause, title }) => ({ clause, title })),
    )
  })

  it('C14.2 do not say what a path names that is outside of the API', async () => {
    const explanation = await explain(gateway, { target: '/elsewhere/1.0/b/ACME' })
    expect(checkOf(explanation, 'C4.3')).toMatchObject({
      verdict: 'not reached',
      words: 'The path is not known.',
    })
  })

  it('C14.2 do not say that a body fits which is not described as a whole', async () => {
    const explanation = await explain(
      gateway,
      {
        target: '/api/1.0/b/ACME/fund-data/fund-create',
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Content-Length': '99' },
        body: '{}',
      },
      { token: good },
    )
    const { verdict, words } = explanation.checks.filter(({ clause }) => clause === 'C4.11').at(-1)!
    expect(verdict).toBe('unknown')
    expect(words).toMatch(/^The body is not read\..*not as long as Content-Length says/)
  })

  it('C14.2 are not reached where nobody and no action is known', async () => {
    const { checks } = await explain(gateway, { target: '/api/1.0/b/ACME/nothing/at-all' })
    const verdicts = Object.fromEntries(checks.map(({ clause, verdict }) => [clause, verdict]))
    expect(verdicts).toMatchObject({
      'C4.4': 'failed',
      'C4.6': 'failed',
      'C4.7': 'not reached',
      'C4.8': 'not reached',
    })
  })

  it('C14.2 of userinfo are its own', async () => {
    const { kind, checks } = await explain(
      gateway,
      { target: '/api/1.0/u/connect/userinfo', method: 'DELETE' },
      { token: good },
    )
    expect(kind).toBe('userinfo')
    expect(checks.map(({ clause, verdict }) => `${clause} ${verdict}`)).toEqual([
      ...['C4.1 passed', 'C4.2 passed', 'C4.3 passed', 'C4.4 passed', 'C4.4a passed'],
      'C4.5 passed',
      'C6.3.1 failed',
    ])
  })
})

describe('C14.3 what the wire hides', () => {
  it.each([
    ['no such area', '/api/1.0/b/ACME/nothing/fund-list', 'unknown_action', 'C4.6', { problem: 'area' }],
    ['no such action', '/api/1.0/b/ACME/fund-data/nothing', 'unknown_action', 'C4.6', { problem: 'action' }],
    [
      'an action of the other level',
      '/api/1.0/f/ACME/SUPER1/fund-data/fund-list',
      'unknown_action',
      'C4.6',
      { problem: 'action', otherLevel: 'business' },
    ],
    [
      'an unknown business',
      '/api/1.0/b/NOWHERE/fund-data/fund-list',
      'unknown_place',
      'C4.8',
      { problems: ['unknown business', 'other target'] },
    ],
    [
      'an unknown fund',
      '/api/1.0/f/ACME/NOTHING/fund-data/fund-detail',
      'unknown_place',
      'C4.8',
      { problems: ['unknown fund'] },
    ],
    [
      'another target',
      '/api/1.0/b/GLOBEX/fund-data/fund-list',
      'unknown_place',
      'C4.8',
      { problems: ['other target'], exists: true },
    ],
  ] as const)('C14.3 which of the 404s it is: %s', async (_case, target, fault, clause, facts) => {
    const sent = { target, headers: bearer(good) }
    expect(await send(gateway, sent)).toMatchObject({ status: 404 })
    expect(checkOf(await expectExplained(gateway, sent, fault), clause).facts).toMatchObject(facts)
  })

  it.each([
    ['a token that is none', 'hello', 'not a JWT'],
    ['a token of another issuer', 'issuer', 'wrong issuer'],
  ])('C14.3 what is wrong with %s', async (_case, text, problem) => {
    const [header = '', payload = '', signature = ''] = good.split('.')
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Record<string, unknown>
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const token =
      text === 'issuer'
        ? [header, encode({ ...claims, iss: 'https://x.example' }), signature].join('.')
        : text
    const explanation = await explain(gateway, LIST, { token })
    expect(checkOf(explanation, 'C4.4')).toMatchObject({ reason: 'invalid_token', facts: { problem } })
  })

  it('C14.3 that a token has expired, and when', async () => {
    const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    clock.advance(3600_000)
    const sent = { ...LIST, headers: bearer(token) }
    expect(await send(gateway, sent)).toMatchObject({ status: 401 })
    const explanation = await expectExplained(gateway, sent, 'expired_token')
    expect(checkOf(explanation, 'C4.4')).toMatchObject({
      facts: { problem: 'expired', client: 'acme-books' },
    })
    expect(checkOf(explanation, 'C4.4').words).toMatch(/^It expired at 2026-03-10T\d\d:\d\d:\d\d\.000Z\.$/)
    good = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
  })

  it('C14.3 which rule revoked a token, and by whose order', async () => {
    const { access_token: token } = await issueToken(gateway, {
      client: 'globex-ledger',
      username: 'bob',
      scope: 'fund.read target:b/GLOBEX',
    })
    const operator = { by: 'olga', reason: 'laptop lost', via: '127.0.0.1' }
    const options = { preview: false, consents: false, force: false }
    await revoke(gateway.context, { client: 'globex-ledger' }, options, operator)
    const sent = { target: '/api/1.0/b/GLOBEX/fund-data/fund-list', headers: bearer(token) }
    expect(await send(gateway, sent)).toMatchObject({ status: 401 })
    const { facts, words } = checkOf(await expectExplained(gateway, sent, 'revoked_token'), 'C4.4')
    expect(facts).toMatchObject({
      problem: 'revoked',
      revokedBy: { tokens: { client: 'globex-ledger' }, order: operator },
    })
    expect(words).toContain('client globex-ledger')
    expect(words).toContain('by olga (127.0.0.1): laptop lost')
  })

  it('C14.3 which scope values are held, implied and missing, and the fewest that would do', async () => {
    const { access_token: token } = await issueToken(gateway, { scope: 'fund.read target:b/ACME' })
    const sent = {
      method: 'POST',
      target: DETAIL,
      headers: { ...bearer(token), 'Content-Type': 'application/json' },
      body: '{}',
    }
    const { facts } = checkOf(await expectExplained(gateway, sent, 'insufficient_scope'), 'C4.7')
    expect(facts).toEqual({
      held: ['fund.read'],
      implied: ['fund.details.read', 'fund.member.read'],
      missing: ['fund.details.maintain'],
      required: ['fund.details.maintain'],
    })
  })

  it('C14.3 which switch closes a place, since when and by whom', async () => {
    await gateway.world.maintenance.set(
      { scope: { kind: 'area', name: 'fund-data' } },
      { by: 'olga', reason: 'moving house', via: '127.0.0.1' },
    )
    const { facts } = checkOf(
      await expectExplained(gateway, { ...LIST, headers: bearer(good) }, 'place_maintenance'),
      'C4.9',
    )
    expect(facts['closedBy']).toMatchObject([{ scope: 'area/fund-data', by: 'olga', reason: 'moving house' }])
    await gateway.world.maintenance.end(gateway.world.maintenance.list(), { via: '127.0.0.1' })
  })
})

describe('C14.2 a report-only area', () => {
  it('C14.2 lets a call in, and says which checks refuse nothing there', async () => {
    const reporting = await postern({
      keeps: 'nothing',
      change: (configuration) => ({
        ...configuration,
        areas: {
          ...configuration.areas,
          'fund-data': { ...configuration.areas['fund-data']!, mode: 'report-only' },
        },
      }),
    })
    const { outcome, reportOnly, checks } = await explain(reporting, LIST)
    expect([outcome, reportOnly]).toEqual(['let in', { area: 'fund-data', wouldRefuse: 'no_credentials' }])
    const failed = checks.filter(({ verdict }) => verdict === 'failed')
    expect(failed).toMatchObject([{ clause: 'C4.4', enforced: false, wouldFailToo: false }])
    reporting.switches.set([{ scope: { kind: 'area', name: 'fund-data' } }])
    expect(await explain(reporting, LIST)).toMatchObject({
      outcome: 'refused',
      refusal: { clause: 'C4.9', reason: 'place_maintenance' },
    })
  })
})
