import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { CHECKS } from '../../src/gateway/decide/order.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { Fault, type FaultCode } from '../../src/base/kernel/faults.ts'
import { expectExplained } from '../support/explained.ts'
import { send, expectFault, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** What a request, and the world around it, look like. Whatever is patched is broken. */
interface Case {
  readonly method: string
  readonly version: string
  readonly place: string
  readonly action: string
  readonly query: string
  readonly token: 'good' | 'poor' | 'malformed' | 'foreign scheme' | 'as bound' | 'none'
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  readonly serviceClosed: boolean
  readonly closed: 'area' | 'business' | 'backend' | undefined
  readonly limited: 'rate_limited' | 'overloaded' | undefined
}

interface Breakage {
  readonly clause: string
  readonly fault: FaultCode
  readonly patch: Partial<Case>
}

const breakage = (clause: string, fault: FaultCode, patch: Partial<Case>): Breakage => ({
  clause,
  fault,
  patch,
})

/** C4.1 to C4.5, which every call under /api goes through. */
const ENTRANCE: readonly Breakage[] = [
  breakage('C4.1', 'bad_host', { headers: { Host: undefined } }),
  breakage('C4.1', 'bad_target', { query: '?a#b' }),
  breakage('C4.1', 'target_too_long', { query: `?${'a'.repeat(8200)}` }),
  breakage('C4.1', 'headers_too_large', { headers: { 'X-Large': 'a'.repeat(20_000) } }),
  breakage('C4.1', 'trace_refused', { method: 'TRACE' }),
  breakage('C4.2', 'service_maintenance', { serviceClosed: true }),
  breakage('C4.3', 'unknown_api_version', { version: '2.0' }),
  breakage('C4.4', 'no_credentials', { token: 'none' }),
  breakage('C4.4', 'other_scheme', { token: 'foreign scheme' }),
  breakage('C4.4', 'invalid_token', { token: 'malformed' }),
  breakage('C4.4a', 'unbound_token', { token: 'as bound' }),
  breakage('C4.5', 'rate_limited', { limited: 'rate_limited' }),
  breakage('C4.5', 'overloaded', { limited: 'overloaded' }),
]

const DATA: readonly Breakage[] = [
  ...ENTRANCE,
  breakage('C4.6', 'unknown_action', { action: 'fund-data/nothing' }),
  breakage('C4.6', 'unknown_action', { action: 'nothing/fund-detail' }),
  breakage('C4.6', 'method_not_allowed', { method: 'DELETE' }),
  breakage('C4.7', 'insufficient_scope', { token: 'poor' }),
  breakage('C4.8', 'unknown_place', { place: 'f/NOWHERE/SUPER1' }),
  breakage('C4.8', 'unknown_place', { place: 'f/GLOBEX/GROWTH' }),
  breakage('C4.8', 'unknown_place', { place: 'f/ACME/NOTHING' }),
  breakage('C4.9', 'place_maintenance', { closed: 'area' }),
  breakage('C4.9', 'place_maintenance', { closed: 'business' }),
  breakage('C4.9', 'place_maintenance', { closed: 'backend' }),
  breakage('C4.10', 'not_acceptable', { headers: { Accept: 'image/png' } }),
  breakage('C4.10', 'unknown_action_version', {
    headers: { Accept: 'application/vnd.postern.action.v9+json' },
  }),
  breakage('C4.11', 'query_invalid', { query: '?limit=x' }),
  breakage('C4.11', 'unsupported_media_type', { headers: { 'Content-Type': 'text/plain' } }),
  breakage('C4.11', 'body_too_large', { headers: { 'Content-Length': '1048577' } }),
  breakage('C4.11', 'body_malformed', { body: '{"Name":' }),
  breakage('C4.11', 'body_missing', { body: '' }),
  breakage('C4.11', 'body_invalid', { body: '{"Colour":"red"}' }),
]

const USERINFO: readonly Breakage[] = [
  ...ENTRANCE,
  breakage('method', 'method_not_allowed', { method: 'DELETE' }),
  breakage('openid', 'insufficient_scope', { token: 'poor' }),
  breakage('Accept', 'not_acceptable', { headers: { Accept: 'application/xml' } }),
  breakage('Accept', 'unknown_action_version', {
    headers: { Accept: 'application/vnd.postern.action.v9+json' },
  }),
  breakage('Content-Type', 'unsupported_media_type', { headers: { 'Content-Type': 'text/plain' } }),
]

/** Every pair of which the first belongs to an earlier clause: the earlier one's patch wins where both patch the same. */
const pairsOf = (breakages: readonly Breakage[]): readonly (readonly [Breakage, Breakage])[] =>
  breakages.flatMap((earlier, at) =>
    breakages
      .slice(at + 1)
      .filter((later) => later.clause !== earlier.clause)
      .map((later) => [earlier, later] as const),
  )

const GOOD: Case = {
  method: 'POST',
  version: '1.0',
  place: 'f/ACME/SUPER1',
  action: 'fund-data/fund-detail',
  query: '',
  token: 'good',
  headers: { 'Content-Type': 'application/json' },
  body: '{}',
  serviceClosed: false,
  closed: undefined,
  limited: undefined,
}

const combine = (base: Case, patches: readonly Partial<Case>[]): Case => {
  const headers = Object.assign({}, base.headers, ...patches.map((patch) => patch.headers).reverse())
  return Object.assign({}, base, ...patches.toReversed(), { headers }) as Case
}

/** The operation that all pairs are of declares a parameter of its query. */
const withParameter = (loaded: Configuration): Configuration => ({
  ...loaded,
  actions: loaded.actions.map((action) =>
    action.action === 'fund-detail' && action.methods.POST
      ? {
          ...action,
          methods: {
            ...action.methods,
            POST: { ...action.methods.POST, parameters: { limit: { type: 'integer' } } },
          },
        }
      : action,
  ),
})

let gateway: StartedPostern
let authorization: Record<Case['token'], string | undefined>

beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing', change: withParameter })
  const { access_token: good } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const { access_token: poor } = await issueToken(gateway, { scope: 'profile api1 target:b/ACME' })
  authorization = {
    good: `Bearer ${good}`,
    poor: `Bearer ${poor}`,
    malformed: `Bearer ${good.slice(0, -2)}`,
    'foreign scheme': `bearer ${good}`,
    'as bound': `DPoP ${good}`,
    none: undefined,
  }
})
afterAll(() => gateway.close())

const admitAll = (): undefined => undefined
const NOTHING_COUNTED = () => ({ verdict: undefined, rate: undefined, inFlight: { now: 0, most: undefined } })
afterEach(() => {
  gateway.switches.set([])
  Object.assign(gateway.world.admission, { admit: admitAll, preview: NOTHING_COUNTED })
})

/** Sends a request: it is refused with this fault, and an explanation of it says the same (C14.1). */
async function expectRefused(
  sent: Sent,
  fault: FaultCode,
  rendered: Parameters<typeof expectFault>[2] = {},
): Promise<void> {
  expectFault(await send(gateway, sent), fault, rendered)
  await expectExplained(gateway, sent, fault)
}

/** Sends a request that is let in, as an explanation says too. */
async function expectLetIn(sent: Sent): Promise<void> {
  const response = await send(gateway, sent)
  expect(response.status, response.body).toBe(200)
  await expectExplained(gateway, sent, undefined)
}

const CLOSURES = {
  area: { kind: 'area', name: 'fund-data' },
  business: { kind: 'business', name: 'ACME' },
  backend: { kind: 'backend', name: 'sample' },
} as const

/** Makes the world of a case, and its request. */
function arrange({ limited, serviceClosed, closed, ...request }: Case): Sent {
  gateway.switches.set([
    ...(serviceClosed ? [{ scope: { kind: 'service' as const }, retryAfter: 9 }] : []),
    ...(closed ? [{ scope: CLOSURES[closed], retryAfter: 9 }] : []),
  ])
  const refusal = limited && new Fault(limited, { retryAfter: 9 })
  Object.assign(gateway.world.admission, {
    admit: () => {
      if (refusal !== undefined) throw refusal
    },
    preview: () => ({ ...NOTHING_COUNTED(), verdict: refusal && { headers: undefined, refusal } }),
  })
  const { method, version, place, action, query, token, headers, body } = request
  return {
    method,
    target: `/api/${version}/${place}/${action}${query}`,
    headers: { ...headers, Authorization: authorization[token] },
    body,
  }
}

const titled = (pairs: ReturnType<typeof pairsOf>) =>
  pairs.map(
    ([earlier, later]) =>
      [`${earlier.clause} ${earlier.fault}`, `${later.clause} ${later.fault}`, earlier, later] as const,
  )

describe('C4: the order of the decision, first failure wins', () => {
  it('C4: the table in the code is the order of the contract', () => {
    expect([...new Set(CHECKS.map(({ clause }) => clause))]).toEqual(
      ['1', '2', '3', '4', '4a', '5', '6', '7', '8', '9', '10', '11'].map((number) => `C4.${number}`),
    )
    for (const { clause, fault } of DATA)
      expect(CHECKS.filter((check) => check.clause === clause).flatMap(({ faults }) => faults)).toContain(
        fault,
      )
    expect(new Set(DATA.map(({ clause }) => clause))).toEqual(new Set(CHECKS.map(({ clause }) => clause)))
  })

  it('C4: the request that the pairs break is let through', async () => {
    const response = await send(gateway, arrange(GOOD))
    expect(`${String(response.status)} ${response.body}`).toBe('200 {"Errors":[],"Data":{}}')
    await expectExplained(gateway, arrange(GOOD), undefined)
  })

  it.each(DATA.map((each) => [each.clause, each.fault, each] as const))(
    'C4: a request that fails %s alone is answered %s',
    async (_clause, fault, { patch }) => {
      await expectRefused(arrange(combine(GOOD, [patch])), fault)
    },
  )

  it.each(titled(pairsOf(DATA)))('C4: %s comes before %s', async (_earlier, _later, earlier, later) => {
    await expectRefused(arrange(combine(GOOD, [earlier.patch, later.patch])), earlier.fault)
  })

  const within = [
    ['query_invalid', ['query_invalid', 'unsupported_media_type']],
    ['unsupported_media_type', ['unsupported_media_type', 'body_too_large']],
    ['unsupported_media_type', ['unsupported_media_type', 'body_malformed']],
    ['unsupported_media_type', ['unsupported_media_type', 'body_missing']],
    ['body_too_large', ['body_too_large', 'body_malformed']],
    ['body_too_large', ['body_too_large', 'body_invalid']],
  ] as const
  it.each(within)('C4.11: %s comes first of %s', async (fault, names) => {
    const patches = names.map((name) => DATA.find((each) => each.fault === name)?.patch ?? {})
    await expectRefused(arrange(combine(GOOD, patches)), fault)
  })
})

describe('C6.3.1: the order of userinfo', () => {
  const BASE: Case = { ...GOOD, method: 'GET', place: 'u', action: 'connect/userinfo', headers: {}, body: '' }

  it('C6.3.1: the request that the pairs break is let through', async () => {
    await expectLetIn(arrange(BASE))
  })

  it.each(USERINFO.map((each) => [each.clause, each.fault, each] as const))(
    'C6.3.1: a request that fails %s alone is answered %s',
    async (_clause, fault, { patch }) => {
      const format = patch.headers?.['Accept'] === 'application/xml' ? 'xml' : 'json'
      await expectRefused(arrange(combine(BASE, [patch])), fault, { format })
    },
  )

  it.each(titled(pairsOf(USERINFO)))('C6.3.1: %s comes before %s', async (_a, _b, earlier, later) => {
    const sent = combine(BASE, [earlier.patch, later.patch])
    const format = sent.headers['Accept'] === 'application/xml' ? 'xml' : 'json'
    await expectRefused(arrange(sent), earlier.fault, { format })
  })

  it.each(['area', 'business', 'backend'] as const)(
    'C6.3.1: C4.6, C4.8 and C4.9 do not apply: the %s under maintenance changes nothing',
    async (closed) => {
      await expectLetIn(arrange({ ...BASE, closed }))
    },
  )
})
