import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  attackMemory,
  attackUpstream,
  bytesOf,
  RawCaller,
  type Attacked,
  type AttackedMemory,
  type AttackedUpstream,
} from '../support/attacked.ts'
import { sized } from '../support/long.ts'
import { propertyTimes } from '../support/property-seed.ts'
import { issueToken } from '../support/tokens.ts'

/** The general rules behind the attacks of this folder, over real sockets: C4.8 and C3.4 for whatever comes. */

let memory: AttackedMemory
let http: AttackedUpstream

beforeAll(async () => {
  memory = await attackMemory()
  http = await attackUpstream()
})
afterAll(async () => {
  await memory.close()
  await http.close()
})

interface Holder {
  readonly what: string
  /** What its token opens; a business alone opens all its funds. */
  readonly business: string | undefined
  readonly fund: string | undefined
  readonly authorization: string
}

const SCOPE = 'fund.maintain business.fund.list business.fund.create'

async function holdersAt({ gateway }: Attacked): Promise<Holder[]> {
  const hold = async (what: string, target: string, user = {}): Promise<Holder> => {
    const scope = `${user === BOB ? 'fund.read' : SCOPE} ${target}`.trim()
    const { access_token } = await issueToken(gateway, { ...user, scope })
    const [, business, fund] = /^target:[bf]\/([^/]+)(?:\/(.+))?$/.exec(target) ?? []
    return { what, business, fund, authorization: `Authorization: Bearer ${access_token}\r\n` }
  }
  return [
    await hold('alice at ACME', 'target:b/ACME'),
    await hold('alice at GLOBEX', 'target:b/GLOBEX'),
    await hold('bob at GLOBEX', 'target:b/GLOBEX', BOB),
    await hold('alice at one fund', 'target:f/ACME/SUPER1'),
    await hold('alice nowhere', ''),
    { what: 'nobody', business: undefined, fund: undefined, authorization: '' },
  ]
}
const BOB = { client: 'globex-ledger', username: 'bob' }

const BUSINESSES = ['ACME', 'GLOBEX', 'INITECH', 'acme', 'NOWHERE', '%41CME', 'ACM%45', '..']
const FUNDS = ['SUPER1', 'SUPER2', 'GROWTH', 'LEGACY', 'NONE']
const AT_BUSINESS = ['fund-data/fund-list', 'fund-data/fund-create', 'fund-data/echo/x', 'fund-data/any/x']
const AT_FUND = ['fund-data/fund-detail', 'member-data/member-list']
const HOSTILE = [
  ...[
    '/',
    '//',
    '\\',
    '/..',
    '/../',
    '/./',
    '/%2e%2e/',
    '%2f',
    '%2F..%2f',
    '%5c',
    '..%5c',
    ';',
    ';a=b/',
    '%3b/',
  ],
  ...[
    '%00',
    '%252e%252e/',
    '%25%32%66',
    '#',
    '?',
    '?/../',
    '%c0%ae',
    '%',
    '%41',
    '..',
    '.',
    '...',
    '/b/',
    '/f/',
  ],
  ...['/api/1.0/b/', 'ACME', 'GLOBEX', 'SUPER1', '\t', ' ', '\u0080', '%E2%80%A8', '%u002f', '*', '@', ':'],
]

const path = fc
  .record({
    business: fc.constantFrom(...BUSINESSES),
    fund: fc.constantFrom(...FUNDS),
    atFund: fc.boolean(),
    action: fc.nat(3),
    query: fc.constantFrom('', '', '?', '?b=GLOBEX', '?/../../b/GLOBEX', '?business=ACME'),
    /** Pieces put in at random places; most paths have none, so that many get through. */
    hostile: fc.oneof(
      { weight: 2, arbitrary: fc.constant<[number, string][]>([]) },
      { weight: 3, arbitrary: fc.array(fc.tuple(fc.nat(60), fc.constantFrom(...HOSTILE)), { maxLength: 4 }) },
    ),
  })
  .map(({ business, fund, atFund, action, query, hostile }) => {
    const whole = atFund
      ? `/api/1.0/f/${business}/${fund}/${AT_FUND[action % AT_FUND.length]}`
      : `/api/1.0/b/${business}/${AT_BUSINESS[action]}`
    return (
      hostile.reduce((text, [at, piece]) => text.slice(0, 8 + at) + piece + text.slice(8 + at), whole) + query
    )
  })

const spoofs = fc.constantFrom(
  '',
  '',
  'X-Postern-Business: GLOBEX\r\n',
  'X-Original-URL: /api/1.0/b/GLOBEX/fund-data/fund-list\r\n',
  'X-Forwarded-Prefix: /api/1.0/b/ACME/..\r\n',
  'Connection: X-Postern-Business\r\n',
)

/** More: `npm run prove properties`. */
const RUNS = sized(600, 2_000) * propertyTimes

/** Random pairs of token and path; `judge` looks at what got through of each. Answers how many did. */
async function attackAtRandom(
  attacked: Attacked,
  runs: number,
  judge: (holder: Holder, target: string) => void,
): Promise<number> {
  const holders = await holdersAt(attacked)
  const caller = new RawCaller(attacked.port)
  const pair = fc.tuple(
    fc.constantFrom(...holders),
    path,
    spoofs,
    fc.constantFrom('GET', 'GET', 'HEAD', 'POST'),
  )
  let through = 0
  await fc.assert(
    fc.asyncProperty(pair, async ([holder, target, spoof, method]) => {
      attacked.forget()
      const body = method === 'POST' ? '{"Status":"Active"}' : ''
      const framing =
        body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
      const lines = `${holder.authorization}${spoof}${framing}`
      await caller.call(bytesOf({ method, target, lines, body }), { head: method === 'HEAD' })
      through += attacked.reached().length
      judge(holder, target)
    }),
    { numRuns: runs },
  )
  caller.close()
  return through
}

const opens = (holder: Holder, business: string, fund: string | undefined): boolean =>
  holder.business === business && (holder.fund === undefined || holder.fund === fund)

/** Not so many that the tests take long, not so few that nothing got through and the rule was never tried. */
const enough = (through: number): void => expect(through).toBeGreaterThan(RUNS / 50)

describe('C4.8 whatever path a token is sent with', () => {
  it('reaches no other business in the memory backend', { timeout: 120_000 * propertyTimes }, async () => {
    const through = await attackAtRandom(memory, RUNS, (holder, target) => {
      for (const { business, fund, principal } of memory.calls()) {
        expect([holder.what, target, business, fund, opens(holder, business, fund)]).toEqual([
          holder.what,
          target,
          business,
          fund,
          true,
        ])
        expect(principal?.target?.business).toBe(business)
      }
    })
    enough(through)
  })

  it(
    'reaches no other business at an upstream, however sloppily that reads its paths',
    { timeout: 120_000 * propertyTimes },
    async () => {
      const through = await attackAtRandom(http, RUNS, (holder, target) => {
        for (const received of http.received()) {
          const read = sloppily(received.target)
          const [, , level, business = '', fund] = read
          const shown = [holder.what, target, received.target]
          expect([...shown, opens(holder, business, level === 'f' ? fund : undefined)]).toEqual([
            ...shown,
            true,
          ])
          expect(received.headers['x-postern-business']).toEqual([business])
        }
      })
      enough(through)
    },
  )
})

/** A path as the most careless of upstreams would read it: decoded thrice, `\` for `/`, no parameters, dots resolved. */
function sloppily(target: string): string[] {
  let text = target.replace(/[?#].*$/s, '')
  for (let depth = 0; depth < 3; depth += 1) text = decodeLoosely(text)
  const segments: string[] = []
  for (const sent of text.replaceAll('\\', '/').split(/[/?#]/)) {
    const segment = sent.replace(/;.*$/s, '').replace(/\0.*$/s, '')
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments
}

const decodeLoosely = (text: string): string =>
  text.replace(/%(?:u00)?([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** The same path read strictly: split once, each segment decoded once. */
const strictly = (target: string): string[] =>
  target
    .replace(/\?.*$/s, '')
    .slice(1)
    .split('/')
    .map((segment) => decodeLoosely(segment))

describe('C3.4 whatever a request target holds', () => {
  const pieces = [...HOSTILE, '%2B', '%C3%A9', 'a', '-', '~', "'", '%20', '%', '2', 'e', 'f']
  const parameter = fc
    .array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 6 })
    // A space at its end is none of the target's: it ends there.
    .map((parts) => parts.join('').trimEnd())

  it(
    'is refused with 400 if anybody could read it in another way, and else arrives as it was judged',
    { timeout: 60_000 * propertyTimes },
    async () => {
      const caller = new RawCaller(http.port)
      const seen = { refused: 0, served: 0 }
      await fc.assert(
        fc.asyncProperty(parameter, async (one) => {
          http.forget()
          const target = `/api/1.0/b/ACME/fund-data/echo/${one}`
          const { status } = await caller.call(bytesOf({ target, lines: http.authorization }))
          const dangerous = JSON.stringify(sloppily(target)) !== JSON.stringify(strictly(target))
          const reached = http.received().map((received) => sloppily(received.target))
          if (dangerous || status !== 200) expect([target, reached]).toEqual([target, []])
          else expect([target, reached]).toEqual([target, [strictly(target)]])
          if (dangerous) expect([target, status]).toEqual([target, 400])
          seen[status === 200 ? 'served' : 'refused'] += 1
        }),
        { numRuns: RUNS / 2 },
      )
      caller.close()
      expect(seen.served).toBeGreaterThan(RUNS / 30)
      expect(seen.refused).toBeGreaterThan(RUNS / 6)
    },
  )
})
