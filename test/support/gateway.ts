import { Problems } from '../../src/base/config/problems.ts'
import { compileCatalogue } from '../../src/base/config/scopes/catalogue.ts'
import type { Admission } from '../../src/base/contracts/calls/admission.ts'
import { NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import type { Backend, BackendAnswer, Call } from '../../src/base/contracts/calls/backend.ts'
import type { Exchange } from '../../src/base/contracts/calls/exchange.ts'
import type { Principal } from '../../src/base/contracts/people/principal.ts'
import type { DecisionEvent, Recorder } from '../../src/base/contracts/records/recorder.ts'
import type { Closure } from '../../src/base/contracts/calls/switches.ts'
import { compileActions } from '../../src/gateway/actions/compile-actions.ts'
import { Conversions } from '../../src/gateway/conversion/conversions.ts'
import { compileFaultRenderer } from '../../src/gateway/decide/represent.ts'
import type { Runtime } from '../../src/gateway/decide/runtime.ts'
import type { ActionConfig, AreasConfig } from '../../src/gateway/actions/schema.ts'
import { type TokenAuthority, TokenCheck } from '../../src/gateway/decide/token-check.ts'
import { compileNegotiation } from '../../src/base/http/head/accept.ts'
import { compileAuthorities, parseRequestTarget } from '../../src/base/http/head/request-target.ts'
import { Standing } from '../../src/identity/keys/verify/token-verifier.ts'
import { PRINCIPAL } from './calls.ts'
import { fakeExchange } from './events.ts'
import { movableClock, type MovableClock } from './movable-clock.ts'

const BASE = 'http://api.example'
const AUTHORITIES = compileAuthorities([BASE])

export const CATALOGUE = compileCatalogue([
  { name: 'fund.read', description: 'Read', implies: [] },
  { name: 'fund.write', description: 'Write', implies: ['fund.read'] },
])

const rule = { scopes: { any: ['fund.read'] }, versions: [1], items: {} }

/** One action at business level, GET and POST, and one at fund level. */
const ACTIONS = [
  {
    level: 'business',
    area: 'fund-data',
    action: 'fund-list',
    methods: { GET: rule, POST: { ...rule, body: { required: true } } },
  },
  { level: 'fund', area: 'fund-data', action: 'detail/{id}', methods: { GET: rule } },
] as unknown as readonly ActionConfig[]

export interface GatewayParts {
  readonly actions?: readonly ActionConfig[]
  readonly areas?: AreasConfig
  readonly backend?: Partial<Backend>
  readonly admission?: Admission
  /** Verifies every token as `PRINCIPAL`'s, unless told otherwise. */
  readonly verify?: TokenAuthority['verify']
  readonly service?: () => Closure | undefined
  readonly place?: () => Closure | undefined
  readonly isRevoked?: (principal: Principal) => boolean
  readonly runtime?: Partial<Runtime>
}

export interface Gateway {
  readonly runtime: Runtime
  readonly tokens: TokenCheck
  readonly clock: MovableClock
  /** Tokens that were verified, in order. */
  readonly verified: string[]
  readonly decisions: DecisionEvent[]
  readonly cache: ('hit' | 'miss')[]
  /** What the backend was asked. */
  readonly calls: Call[]
}

/** A runtime of the gateway without a listener, a store and keys. */
export function makeGateway(parts: GatewayParts = {}): Gateway {
  const clock = movableClock(0)
  const verified: string[] = []
  const decisions: DecisionEvent[] = []
  const cache: ('hit' | 'miss')[] = []
  const calls: Call[] = []
  const recorder: Recorder = {
    decision: (event) => decisions.push(event),
    token: () => undefined,
    backend: () => undefined,
    tokenCache: (outcome) => cache.push(outcome),
    note: () => undefined,
  }
  const verify = parts.verify ?? (() => Promise.resolve(PRINCIPAL))
  const backend: Backend = {
    name: 'funds',
    format: 'json',
    payload: 'bare',
    answer: (call) => {
      calls.push(call)
      return Promise.resolve(jsonAnswer('{"a":1}'))
    },
    close: () => Promise.resolve(),
    ...parts.backend,
  }
  const problems = new Problems()
  const { table, reportOnly } = compileActions(
    parts.actions ?? ACTIONS,
    {
      catalogue: CATALOGUE,
      backends: new Map([[backend.name, backend]]),
      areas: parts.areas ?? { 'fund-data': { backend: 'funds' } },
      upgrade: undefined,
    },
    problems,
  )
  if (problems.failed) throw new Error(JSON.stringify(problems.list))
  const tokens = new TokenCheck({
    authority: {
      verify: (token) => (verified.push(token), verify(token)),
      verifyLocally: verify,
      read: () => PRINCIPAL,
      leeways: new Map(),
    },
    rules: { isRevoked: parts.isRevoked ?? (() => false), ruleFor: () => undefined },
    recorder,
    clock,
    cacheSize: 1_000_000,
  })
  const runtime: Runtime = Object.freeze({
    actions: table,
    reportOnly,
    negotiation: compileNegotiation({ vendor: 'postern', defaultFormat: 'json' }),
    tokens,
    proofs: undefined,
    places: undefined,
    switches: {
      service: parts.service ?? (() => undefined),
      place: parts.place ?? (() => undefined),
      identity: () => undefined,
    },
    admission: parts.admission ?? { admit: () => undefined },
    audit: NO_TRAIL,
    userinfo: undefined,
    recorder,
    clock,
    baseUrl: BASE,
    issuer: BASE,
    host: 'api.example',
    bodyLimit: 1000,
    answerLimit: 1000,
    conversions: new Conversions(),
    strictHeaderNames: false,
    anySchemeCase: false,
    cors: undefined,
    ...parts.runtime,
  })
  return { runtime, tokens, clock, verified, decisions, cache, calls }
}

export const renderFault = compileFaultRenderer(
  compileNegotiation({ vendor: 'postern', defaultFormat: 'json' }),
  { baseUrl: BASE, proofs: undefined },
)

export const jsonAnswer = (text: string, headers: BackendAnswer['headers'] = {}): BackendAnswer => ({
  status: 200,
  headers,
  body: { kind: 'bytes', bytes: Buffer.from(text), contentType: 'application/json' },
})

/** A call of `path`, below `/api/1.0/`, with a bearer token. */
export const exchangeOf = (
  path: string,
  { token = 'token-1', ...rest }: Parameters<typeof fakeExchange>[0] & { readonly token?: string } = {},
): Exchange =>
  fakeExchange({
    target: parseRequestTarget(`/api/1.0/${path}`, AUTHORITIES),
    ...rest,
    headers: { ...(token !== '' && { authorization: `Bearer ${token}` }), ...rest.headers },
  })

export const FUND_LIST = 'b/ACME/fund-data/fund-list'

/** A maintenance that lets some clients through. */
export const closureFor = (...clients: readonly string[]): Closure => ({
  message: undefined,
  retryAfter: 60,
  admitsAddress: () => false,
  clients: new Set(clients),
  closedBy: [],
})

/** Another principal, whose key may be withdrawn. */
export const principalWith = (overrides: Partial<Principal> = {}): Principal => ({
  ...PRINCIPAL,
  key: new Standing(),
  ...overrides,
})
