import { Readable } from 'node:stream'
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, type JWTVerifyResult, SignJWT } from 'jose'
import { Problems } from '../../src/base/config/problems.ts'
import { viewOf } from '../../src/base/config/schema.ts'
import { compileCatalogue } from '../../src/base/config/scopes/catalogue.ts'
import { nodeOf } from '../../src/base/config/tree.ts'
import { load } from '../../src/base/config/validate.ts'
import { NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import type { Answer, Door, Exchange } from '../../src/base/contracts/calls/exchange.ts'
import {
  type Client,
  SECRET_AUTH_METHODS,
  type SigningAlgorithm,
  type User,
} from '../../src/base/contracts/people/people.ts'
import type { ConfiguredBusiness } from '../../src/base/contracts/people/places.ts'
import type { Principal } from '../../src/base/contracts/people/principal.ts'
import type { DecisionEvent, Recorder, TokenEvent } from '../../src/base/contracts/records/recorder.ts'
import type { Store, Subscriber } from '../../src/base/contracts/records/store.ts'
import { openEditors } from '../../src/identity/directory/editors/editors.ts'
import type { Directory } from '../../src/identity/directory/records/compile.ts'
import { SnapshotPeople } from '../../src/identity/directory/records/people.ts'
import { SnapshotPlaces } from '../../src/identity/directory/records/places.ts'
import { CORE_FORM } from '../../src/identity/directory/records/schema.ts'
import { TokenCheck } from '../../src/gateway/decide/token-check.ts'
import type { Head } from '../../src/base/http/head/head.ts'
import { compileAuthorities, parseRequestTarget } from '../../src/base/http/head/request-target.ts'
import type { IdentityDeps } from '../../src/identity/dependencies/dependencies.ts'
import { identityDoor, openIdentity } from '../../src/identity/identity.ts'
import type { IdentityConfig } from '../../src/identity/dependencies/schema.ts'
import { type LogoutNotices, NO_NOTICES } from '../../src/identity/dependencies/logouts.ts'
import { StoreTokenRevoker } from '../../src/identity/stored/token-revoker.ts'
import type { Clock } from '../../src/base/kernel/clock.ts'
import { createDeriver } from '../../src/identity/keys/signing/key-place.ts'
import { importPublicKey } from '../../src/identity/keys/verify/signatures.ts'
import {
  createTokenVerifier,
  type KeyFinder,
  Standing,
} from '../../src/identity/keys/verify/token-verifier.ts'
import { loadSecurityProfile, SETTINGS } from '../../src/serve/start/settings.ts'
import { ownAuthority } from '../../src/serve/start/token-authorities.ts'
import { MemoryStore } from '../../src/state/stores/sqlite/memory.ts'
import { type RevocationParts, RevocationRules } from '../../src/state/stores/feed/revocations.ts'
import { directCarrier } from './direct-carrier.ts'
import { code } from './scope.ts'

export const ISSUER = 'http://id.test'
export const API = 'http://api.test'

export class ManualClock {
  at = Date.UTC(2026, 5, 1)
  now = (): number => this.at
  monotonic = (): number => this.at
}

type Added = Readonly<Record<string, unknown>>

const openSecurity = await loadSecurityProfile()

/** As a configuration file that says nothing about identity has it; and nobody guesses but where a test says so. */
const CONFIG: IdentityConfig = {
  ...(load(
    viewOf(SETTINGS.schema).properties?.['identity'] ?? {},
    nodeOf({}, { file: 'test', line: 1 }),
    [],
    {
      environment: {},
      problems: new Problems(),
    },
  ) as IdentityConfig),
  guessing: {
    attempts: { free: 1000, delay: 1000, longest: 1000 },
    networks: { free: 1000, delay: 1000, longest: 1000 },
    accounts: { free: 1000, delay: 1000, longest: 1000, waiting: 4 },
    forget: 900_000,
    waiting: 32,
  },
}

const CATALOGUE = compileCatalogue(
  Object.entries({
    'business.fund.list': [],
    'business.fund.create': [],
    'fund.details.read': [],
    'fund.details.maintain': ['fund.details.read'],
    'fund.member.read': [],
    'fund.read': ['fund.details.read', 'fund.member.read'],
    'fund.maintain': ['fund.read', 'fund.details.maintain'],
  }).map(([name, implies]) => ({ name, description: name, implies })),
)

const ALL = [
  ...['openid', 'profile', 'email', 'address', 'phone', 'service_profile', 'offline_access'],
  ...['fund.maintain', 'business.fund.list', 'business.fund.create'],
]

/** @param more members of extensions too */
export const client = (id: string, more: Partial<Client> & Added = {}): Client => ({
  authentication: more.kind === 'public' ? ['none'] : ['client_secret_basic', 'client_secret_post'],
  id,
  kind: 'customer',
  name: id,
  secretHashes: [`sha256:${id}-secret`],
  grants: ['password', 'refresh_token'],
  businesses: ['ACME', 'GLOBEX'],
  scopes: ALL,
  agreement: '2026-01-15',
  redirectUris: [],
  postLogoutRedirectUris: [],
  disabled: false,
  requirePkce: false,
  requireBinding: true,
  answerScope: 'granted',
  resource: false,
  ...more,
})

export const user = (username: string, more: Partial<User> = {}): User => ({
  subject: `sub-${username}`,
  username,
  passwordHash: `${username}-password`,
  customers: ['acme-books'],
  disabled: false,
  locked: false,
  access: new Map([
    ['ACME', { role: 'Administrator', scopes: ['fund.maintain', 'business.fund.list'] }],
    ['INITECH', { role: 'Administrator', scopes: ['fund.maintain'] }],
  ]),
  claims: {
    name: 'Alice Arden',
    given_name: 'Alice',
    email: 'alice@acme.test',
    address: { locality: 'Perth' },
    phone_number: '+61 8 5550 0100',
  },
  ...more,
})

const BUSINESSES: readonly ConfiguredBusiness[] = [
  {
    code: code('ACME'),
    name: 'Acme Advisory',
    address: { locality: 'Perth', country: 'AU' },
    phoneNumber: '+61 8 5550 0199',
    funds: new Set([code('SUPER1')]),
  },
  { code: code('GLOBEX'), name: 'Globex Partners', funds: 'any' },
  { code: code('INITECH'), name: 'Initech', funds: new Set() },
]

const makeKey = async (algorithm: SigningAlgorithm) => {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })
  return { privateKey, jwk: { ...(await exportJWK(publicKey)), kid: algorithm, alg: algorithm, use: 'sig' } }
}
const KEYS = { ES256: await makeKey('ES256'), RS256: await makeKey('RS256') }
const JWKS = { keys: [KEYS.ES256.jwk, KEYS.RS256.jwk] }

const DERIVER = createDeriver('a secret of the tests')

const STANDING = new Standing()

const findKey: KeyFinder['find'] = async (kid, algorithm) => {
  const jwk = JWKS.keys.find((key) => key.kid === kid && key.alg === algorithm)
  return jwk && [{ publicKey: await importPublicKey(jwk, algorithm), standing: STANDING }]
}

/** The change feed of one process: what is kept is applied at once. */
function feedOf(store: Store): RevocationParts['feed'] {
  let follower: Subscriber | undefined
  return {
    subscribe: (_topic, subscriber) => {
      follower = subscriber
    },
    append: async (topic, value, expiresAt) => {
      const place = await store.append(topic, value, { expiresAt })
      follower?.apply({ ...place, topic, value, expiresAt }, false)
    },
  }
}

export interface TestIdentityOptions {
  readonly clients?: readonly Client[]
  readonly users?: readonly User[]
  /** Sections of extensions too. */
  readonly config?: Partial<IdentityConfig> & Added
  readonly deps?: Partial<IdentityDeps>
  /** What is done while other processes learn of a change of the directory. */
  readonly pause?: () => Promise<void>
  readonly logouts?: (store: Store, clock: Clock) => LogoutNotices
  /** That of another service: its records, another directory. */
  readonly store?: MemoryStore
}

export interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** The configuration has nobody: the people of the tests are found elsewhere. */
const NOBODY: Directory = {
  places: new SnapshotPlaces(new Map()),
  people: new SnapshotPeople(new Map(), { byName: new Map(), bySubject: new Map() }, new Map()),
  businesses: new Map(),
  clients: new Map(),
  clientForm: CORE_FORM,
  users: new Map(),
  usersBySubject: new Map(),
  roles: new Map(),
}

/** Identity over a small directory; what it verifies and records is kept for the tests to read. */
export function openTestIdentity(options: TestIdentityOptions = {}) {
  const { clients, users, config, deps, pause, store: kept } = options
  const clock = new ManualClock()
  const store = kept ?? new MemoryStore(clock)
  const clientById = new Map((clients ?? [client('acme-books')]).map((each) => [each.id, each]))
  const userByName = new Map((users ?? [user('alice')]).map((each) => [each.username, each]))
  const verified: (string | undefined)[] = []
  const decisions: DecisionEvent[] = []
  const tokens: TokenEvent[] = []
  const notes: { event: string; facts: unknown }[] = []
  const primed: { token: string; principal: Principal }[] = []
  const recorder: Recorder = {
    decision: (event) => decisions.push(event),
    token: (event) => tokens.push(event),
    backend: () => undefined,
    tokenCache: () => undefined,
    note: (_level, event, facts) => notes.push({ event, facts }),
  }
  const rules = new RevocationRules({
    feed: feedOf(store),
    clock,
    recorder,
    longestLife: { tokens: 86_400_000, all: 30 * 86_400_000 },
  })
  const check = new TokenCheck({
    authority: ownAuthority(
      { find: findKey, findLocally: findKey },
      clock,
      {
        authUrl: ISSUER,
        baseUrl: API,
      },
      true,
    ),
    rules,
    recorder,
    clock,
    cacheSize: 100_000,
  })
  const logouts = options.logouts?.(deps?.store ?? store, clock) ?? NO_NOTICES
  const tokenRevoker = new StoreTokenRevoker(deps?.store ?? store, rules, logouts)
  const now = deps?.clock ?? clock
  const base: Omit<IdentityDeps, 'security'> & Pick<Partial<IdentityDeps>, 'security'> = {
    people: {
      findClient: (id) => Promise.resolve(clientById.get(id)),
      findUserByName: (name) => Promise.resolve(userByName.get(name)),
      findUserBySubject: (subject) =>
        Promise.resolve([...userByName.values()].find((each) => each.subject === subject)),
    },
    places: new SnapshotPlaces(new Map(BUSINESSES.map((business) => [business.code, business]))),
    catalogue: CATALOGUE,
    signer: {
      sign: async (claims, { typ, algorithm }) => ({
        token: await new SignJWT({ ...claims })
          .setProtectedHeader({ alg: algorithm, typ, kid: algorithm })
          .sign(KEYS[algorithm].privateKey),
        key: STANDING,
      }),
    },
    publicKeys: { jwks: () => JWKS },
    tokenVerifier: createTokenVerifier({ find: findKey, findLocally: findKey }, clock),
    store,
    // "Hashes" are the secrets themselves; a quick one has the prefix of a quick one.
    hasher: {
      verify: (secret, encoded) => {
        verified.push(encoded)
        return Promise.resolve(encoded?.replace('sha256:', '') === secret)
      },
    },
    issuedTokens: {
      prime: (token, principal) => primed.push({ token, principal }),
      check: (token) => check.check(token),
    },
    deriver: DERIVER,
    rules,
    tokenRevoker,
    users: openEditors({
      store: deps?.store ?? store,
      feed: {
        append: async (topic, value) => {
          await store.append(topic, value)
        },
      },
      tokenRevoker,
      clock,
      configured: NOBODY,
      catalogue: CATALOGUE,
      hasher: { hash: (secret) => Promise.resolve(secret) },
      pause: pause ?? (() => Promise.resolve()),
    }).user,
    logouts,
    outbound: () => Promise.reject(new Error('nobody is called')),
    switches: { service: () => undefined, place: () => undefined, identity: () => undefined },
    recorder,
    audit: NO_TRAIL,
    clock,
    urls: { issuer: ISSUER, api: API },
    config: { ...CONFIG, ...config },
    strictHeaderNames: false,
    anySchemeCase: false,
    changingScopes: new Set(['fund.maintain']),
    longestTarget: 8192,
    clientMethods: {
      current: () => Promise.resolve(new Set([...SECRET_AUTH_METHODS, 'private_key_jwt', 'none', 'dpop'])),
    },
    ...deps,
  }
  const profile = openSecurity({ clock: now, recorder })
  const all: IdentityDeps = { security: profile.clientSecurity({ ...base, clock: now }), ...base }
  const identity = openIdentity(all, { authorization: profile.endpoints })
  const door = identityDoor(() => identity, outside)
  const authorities = compileAuthorities([all.urls.issuer, all.urls.api])
  const send = async (sent: Sent): Promise<JsonAnswer> =>
    jsonAnswer(await door(exchangeOf(sent, authorities)))
  return { clock, store, identity, send, verified, decisions, tokens, notes, primed, check, deps: all }
}

/** The data door, as far as it concerns paths that identity does not serve. */
export const outside: Door = () => ({ status: 404, headers: {}, body: '"outside"' })

export type TestIdentity = ReturnType<typeof openTestIdentity>

export function exchangeOf(
  { method = 'POST', path = '/connect/token', headers = {}, body = '' }: Sent,
  authorities = compileAuthorities([ISSUER, API]),
): Exchange {
  const all: Record<string, string> = { ...headers }
  if (body !== '') all['content-length'] ??= String(Buffer.byteLength(body))
  const head: Head = {
    method,
    rawTarget: path,
    httpVersion: '1.1',
    rawHeaders: Object.entries(all).flat(),
    headers: all,
    remoteAddress: '192.0.2.7',
  }
  return {
    id: 'request-1',
    head,
    target: parseRequestTarget(path, authorities),
    body: Readable.from(body === '' ? [] : [Buffer.from(body)]),
    clientAddress: '192.0.2.7',
    scheme: 'http',
    startedAt: 0,
    carrier: directCarrier,
    hold: () => true,
    onGone: () => undefined,
    onEnd: () => undefined,
  }
}

export interface JsonAnswer {
  readonly status: number
  readonly headers: Answer['headers']
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever the endpoint says; the tests check it
  readonly json: any
}

const jsonAnswer = ({ status, headers, body }: Answer): JsonAnswer => ({
  status,
  headers,
  json: body === undefined || body === '' ? undefined : JSON.parse(body as string),
})

export const basic = (id: string, secret = `${id}-secret`): string =>
  `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`

const FORM = 'application/x-www-form-urlencoded'

/** A token request with the client's Basic credentials; `undefined` takes a default parameter away. */
export const requestToken = (
  service: TestIdentity,
  params: Readonly<Record<string, string | undefined>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<JsonAnswer> =>
  service.send({
    headers: { 'content-type': FORM, authorization: basic('acme-books'), ...headers },
    body: formOf({
      grant_type: 'password',
      username: 'alice',
      password: 'alice-password',
      scope: 'openid fund.read target:b/ACME',
      ...params,
    }),
  })

export const formOf = (params: Readonly<Record<string, string | undefined>>): string =>
  new URLSearchParams(
    Object.entries(params).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  ).toString()

/** Verifies with the published keys, as a client or a resource server would. */
export const verify = (token: string, audience: string, typ: string, now: number): Promise<JWTVerifyResult> =>
  jwtVerify(token, createLocalJWKSet(JWKS), {
    issuer: ISSUER,
    audience,
    typ,
    algorithms: ['ES256', 'RS256'],
    currentDate: new Date(now),
  })
