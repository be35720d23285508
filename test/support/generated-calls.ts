import { BACKEND_CHECK, CHECKS, USERINFO_CHECK } from '../../src/gateway/decide/order.ts'
import type { FaultCode } from '../../src/base/kernel/faults.ts'
import type { MaintenanceSwitch } from '../../src/gateway/maintenance/switch.ts'
import { boundToken } from './bound-tokens.ts'
import { type DirectoryEditors, directoryEditors } from './directory-editors.ts'
import { explain } from './explained.ts'
import { movableClock, type MovableClock } from './movable-clock.ts'
import { prover } from './prover.ts'
import { send, type Sent } from './requests.ts'
import { below, oneOf, type Random, randomFrom } from './seeded-random.ts'
import { type StartedPostern, startPostern } from './start-postern.ts'
import { fillStore, STORED_PASSWORD } from './stored-records.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from './tokens.ts'

/**
 * Calls that break one rule or several, in a world that refuses some of them, each explained and then sent (C14.1). The
 * same seed makes the same calls.
 */
export interface Compared {
  readonly sent: Sent
  /** The outcome by the explanation, and what the log says of the call itself. */
  readonly explained: string
  readonly wire: string
}

/** Reasons of the decision. Whatever else an answer has is the backend's, behind it. */
const DECIDED: ReadonlySet<string> = new Set<FaultCode>(
  [...CHECKS, BACKEND_CHECK, USERINFO_CHECK].flatMap(({ faults }) => faults),
)

const REPORTED = 'member-data'

const DAY = 86_400_000
/** Milliseconds between two calls: so that 10,000 fit into the life of their tokens, and rates run out at times. */
const LONGEST_PAUSE = 16_000

/** The demo with a rate that runs out, a rate of addresses, a report-only area and pages of another origin. */
const startWorld = (clock: MovableClock): Promise<StartedPostern> =>
  startPostern({
    ...{ clock, keeps: 'nothing' },
    change: ({ areas, identity, load, server, ...rest }) => ({
      ...rest,
      identity: { ...identity, accessToken: { ...identity.accessToken, lifetime: DAY } },
      areas: { ...areas, [REPORTED]: { ...areas[REPORTED]!, mode: 'report-only' } },
      load: {
        ...load,
        // The clock jumps, and not because the event loop is late.
        shedding: { ...load.shedding, delay: 0 },
        clients: { ...load.clients, rate: { requests: 2, per: 60_000 } },
        addresses: { rate: { requests: 9, per: 60_000 } },
      },
      server: {
        ...server,
        cors: {
          ...{
            origins: ['https://app.example'],
            methods: ['GET'],
            headers: [],
            exposeHeaders: [],
            maxAge: 0,
          },
        },
      },
    }),
  })

async function tokensIn(gateway: StartedPostern, clock: MovableClock): Promise<readonly string[]> {
  const issued = async (scope: string, more = {}): Promise<string> =>
    (await issueToken(gateway, { scope, ...more })).access_token
  const expired = await issued(ALL_AT_ACME)
  clock.advance(DAY + 1000)
  const good = await issued(ALL_AT_ACME)
  const revoked = await issued(ALL_AT_ACME)
  await gateway.world.tokenRevoker.end({ jti: jtiOf(revoked) })
  const both = await issueToken(gateway, { scope: `${ALL_AT_ACME} offline_access` })
  const [header = '', payload = '', signature = ''] = good.split('.')
  const changed = Buffer.from(JSON.stringify({ ...claimsOf(good), aud: 'https://other.example' })).toString(
    'base64url',
  )
  return [
    ...Array<string>(12).fill(good),
    await issued('fund.read target:b/ACME'),
    await boundToken(gateway, prover(clock)),
    await issued('profile api1 target:b/ACME'),
    await issued('fund.maintain target:f/ACME/SUPER1'),
    await issued('fund.read'),
    await issued('openid fund.read target:b/GLOBEX', { client: 'globex-ledger', username: 'bob' }),
    ...[expired, revoked, both.refresh_token ?? '', both.id_token ?? '', 'nothing', 'a b', ''],
    ...[`${header}.${changed}.${signature}`, `${header}.${payload}.${signature.slice(0, -4)}AAAA`],
  ]
}

/** Tokens of a client and a user of the store, for places of the store. */
async function storedTokens(gateway: StartedPostern, editors: DirectoryEditors): Promise<readonly string[]> {
  const person = { username: 'ann', password: STORED_PASSWORD }
  const asked = { ...person, client: 'tally', secret: await fillStore(editors) }
  const targets = ['b/STORED', 'b/STORED', 'b/OTHER', 'f/STORED/F1']
  const issued = await Promise.all(
    targets.map((target) => issueToken(gateway, { ...asked, scope: `fund.read target:${target}` })),
  )
  return issued.map((each) => each.access_token)
}

const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
const jtiOf = (token: string): string => String(claimsOf(token)['jti'])

const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const GOOD_PATHS = [
  '/api/1.0/b/ACME/fund-data/fund-list',
  DETAIL,
  '/api/1.0/f/ACME/SUPER1/member-data/member-list',
  `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`,
  '/api/1.0/u/connect/userinfo',
]
/** Of places that only the store has (C4.8), and of one that it does not have. */
const STORED_PATHS = [
  '/api/1.0/b/STORED/fund-data/fund-list',
  '/api/1.0/b/OTHER/fund-data/fund-list',
  ...['F1', 'F2'].map((fund) => `/api/1.0/f/STORED/${fund}/fund-data/fund-detail`),
  '/api/1.0/f/OTHER/ANYTHING/member-data/member-list',
  '/api/1.0/b/stored/fund-data/fund-list',
]
const PATHS = [
  ...[
    '/api/1.0/b/GLOBEX/fund-data/fund-list',
    '/api/1.0/b/NOWHERE/fund-data/fund-list',
    '/api',
    '/',
    '/other',
  ],
  ...['/api/1.0/f/ACME/NOTHING/fund-data/fund-detail', '/api/1.0/f/GLOBEX/GROWTH/fund-data/fund-detail'],
  ...[
    '/api/2.0/b/ACME/fund-data/fund-list',
    '/api/1.0/b/ACME/fund-data',
    '/api/1.0/x/ACME/fund-data/fund-list',
  ],
  ...[
    '/api/1.0/b/ACME/fund-data/nothing',
    '/api/1.0/b/ACME/nothing/fund-list',
    '/api/1.0/f/ACME/SUPER1/fund-data/fund-list',
  ],
  ...['/api/1.0/f/ACME/SUPER1/member-data/nothing', '/api/1.0/f/ACME/SUPER1/member-data/member-detail/none'],
  ...[
    '/api/1.0/b/%41CME/fund-data/fund-list',
    '/api/1.0/b/ACME//fund-list',
    '/api/1.0/b/../fund-data/fund-list',
  ],
  ...[
    '/api/1.0/b/AC%2FME/fund-data/fund-list',
    '/api/1.0/b/ACME/fund-data/fund-list?a#b',
    '/api/1.0/b/a%00/x/y',
  ],
  ...['/api/1.0/f/ACME/SUPER%C2%A01/fund-data/fund-detail', '/api/1.0/b/ACME;v=1/fund-data/fund-list'],
  ...['http://elsewhere.example/api/1.0/b/ACME/fund-data/fund-list', '*', `/${'a'.repeat(8200)}`, '/api/%zz'],
]
const METHODS = [
  'GET',
  'GET',
  'GET',
  'POST',
  'POST',
  'HEAD',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'LINK',
  'NONE',
]
const TYPES = [
  'application/json',
  'application/xml',
  'text/plain',
  'application/x-www-form-urlencoded',
  'a/b;c',
]
const ACCEPTS = [
  ...['application/json', 'application/xml', '*/*', 'image/png', 'text/html, */*;q=0.1', ''],
  ...[
    'application/vnd.postern.action.v9+json',
    'application/vnd.postern.action.v1+xml',
    'application/json;q=0',
  ],
]
const BODIES = [
  '{}',
  '{"Status":"Active"}',
  '{"Name":',
  '{"Colour":"red"}',
  '<a/>',
  'Status=Active',
  '[]',
  ' ',
  'null',
]
const ODD_HEADERS: readonly Readonly<Record<string, string | readonly string[] | undefined>>[] = [
  ...[{ Host: undefined }, { Host: 'a b' }, { Host: ['a', 'b'] }, { 'Content-Type': ['a/b', 'c/d'] }],
  ...[{ 'X-Large': 'a'.repeat(17_000) }, { Connection: 'host' }, { Transfer_Encoding: 'chunked' }],
  ...[{ 'Content-Range': 'bytes 0-1/2' }, { 'Content-Encoding': 'gzip' }, { 'Content-Length': '1048577' }],
  ...[{ Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' }, { 'X-Odd': 'a\u0001b' }],
]
const SWITCHES: readonly MaintenanceSwitch[] = [
  { scope: { kind: 'service' } },
  { scope: { kind: 'service' }, clients: ['acme-books'] },
  { scope: { kind: 'service' }, addresses: ['127.0.0.1'] },
  { scope: { kind: 'area', name: 'fund-data' } },
  { scope: { kind: 'area', name: REPORTED } },
  { scope: { kind: 'business', name: 'ACME' }, clients: ['globex-ledger'] },
  { scope: { kind: 'backend', name: 'sample' }, addresses: ['10.0.0.0/8'] },
]

const often = (random: Random, share: number): boolean => random() < share

function makeCall(random: Random, tokens: readonly string[], stored: readonly string[]): Sent {
  const changes = often(random, 0.15)
  const method = changes ? 'POST' : often(random, 0.6) ? 'GET' : oneOf(random, METHODS)
  const isStored = !changes && often(random, 0.2)
  const token = oneOf(random, isStored && often(random, 0.8) ? stored : tokens)
  const scheme = often(random, 0.95)
    ? 'Bearer '
    : oneOf(random, ['bearer ', 'Basic ', 'Bearer', 'DPoP ', 'dpop', ''])
  const body = method === 'POST' || often(random, 0.05) ? oneOf(random, [...BODIES, '']) : ''
  return {
    method,
    target: changes
      ? DETAIL
      : oneOf(random, isStored ? STORED_PATHS : often(random, 0.6) ? GOOD_PATHS : PATHS),
    headers: {
      ...(often(random, 0.93) && { Authorization: `${scheme}${token}` }),
      ...(often(random, 0.3) && { Accept: oneOf(random, ACCEPTS) }),
      ...(body !== '' &&
        often(random, 0.9) && { 'Content-Type': often(random, 0.7) ? TYPES[0] : oneOf(random, TYPES) }),
      ...(often(random, 0.12) && oneOf(random, ODD_HEADERS)),
    },
    body,
  }
}

/** What the log says of the last call: let in, or the reason. In a report-only area also what it would be refused for. */
function wireOutcome(gateway: StartedPostern): string {
  const line = JSON.parse(
    gateway.logLines().findLast((text) => text.includes('"event":"call"')) ?? '{}',
  ) as Record<string, string | undefined>
  const { reason, wouldRefuse } = line
  // In a report-only area the decision refuses no body. The backend may, with the same reasons.
  const isBackends = wouldRefuse !== undefined && reason?.startsWith('body_') === true
  if (reason !== undefined && DECIDED.has(reason) && !isBackends) return reason
  return wouldRefuse === undefined ? 'let in' : `let in, else ${wouldRefuse}`
}

async function explainedOutcome(gateway: StartedPostern, sent: Sent): Promise<string> {
  const { outcome, refusal, reportOnly } = await explain(gateway, sent)
  if (outcome !== 'let in') return refusal?.reason ?? outcome
  return reportOnly?.wouldRefuse === undefined ? outcome : `${outcome}, else ${reportOnly.wouldRefuse}`
}

/** Explains and then sends so many calls. The clock moves only between them, so that both meet the same rates. */
export async function* compareCalls(count: number, seed: number): AsyncGenerator<Compared> {
  const random = randomFrom(seed)
  const clock = movableClock(Date.parse('2026-03-10T10:00:00Z'))
  const gateway = await startWorld(clock)
  try {
    const tokens = await tokensIn(gateway, clock)
    clock.advance(60_000) // The rate of addresses has run out.
    const editors = await directoryEditors(gateway.configuration, gateway.world, () => Promise.resolve())
    const stored = await storedTokens(gateway, editors)
    for (let at = 0; at < count; at++) {
      clock.advance(below(random, LONGEST_PAUSE))
      gateway.switches.set(often(random, 0.7) ? [] : [oneOf(random, SWITCHES)])
      if (often(random, 0.1))
        await (often(random, 0.5) ? editors.funds.disable('STORED/F1') : editors.funds.enable('STORED/F1'))
      const sent = makeCall(random, tokens, stored)
      const explained = await explainedOutcome(gateway, sent)
      await send(gateway, sent)
      yield { sent, explained, wire: wireOutcome(gateway) }
    }
  } finally {
    await gateway.close()
  }
}
