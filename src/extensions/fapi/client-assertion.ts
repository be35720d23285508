/** Clients that sign a JWT instead of sending a secret (C6.1.2; RFC 7521 §4.2, RFC 7523 §3). */
import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import type { Claims, JwsHeader } from '../../base/contracts/people/keys.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import type { AddedMethod } from '../../identity/dependencies/client-security.ts'
import { type IdentityDeps, orUnavailable } from '../../identity/dependencies/dependencies.ts'
import { checkHeader, parseCompactToken } from '../../identity/keys/verify/token-verifier.ts'
import type { ClientKeys } from './client-keys.ts'
import { isFirstUse } from './first-use.ts'
import { BY_KEY, securityOf } from './schema.ts'

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

/** As the discovery document has them. Both names of Ed25519 are in use (RFC 9864 §2.2). */
const ASSERTION_ALGORITHMS: readonly string[] = ['ES256', 'PS256', 'Ed25519', 'EdDSA', 'RS256']

const HEADERS = { algorithms: ASSERTION_ALGORITHMS, typ: ['jwt', 'client-authentication+jwt'] }

/** A genuine assertion (C6.1.2). Whether it was used before is not known yet. */
interface Assertion {
  readonly jti: string
  /** When it expires, in seconds since the epoch. */
  readonly exp: number
}

interface Proven {
  readonly client: Client
  readonly assertion: Assertion
}

interface Request {
  readonly exchange: Exchange
  readonly params: ReadonlyMap<string, string>
}

/** `people`: only who may hold tokens (C6.3.5). */
interface Parts extends Pick<IdentityDeps, 'clock' | 'people' | 'store' | 'urls'> {
  readonly clientKeys: ClientKeys
}

export const assertionMethod = (parts: Parts): AddedMethod => ({
  name: BY_KEY,
  algorithms: ASSERTION_ALGORITHMS,
  isUsed: (params) => params.has('client_assertion') || params.has('client_assertion_type'),
  namedIn: assertedClient,
  async authenticate(request) {
    const { client, assertion } = await proveByAssertion(request, parts)
    return { client, useUp: () => useAssertion(client, assertion, parts) }
  },
})

const failed = (detail: string, cause?: unknown): Fault =>
  new Fault('invalid_client', { detail: `client_assertion: ${detail}`, cause })

/** Whom the assertion of a request names, before anything of it is believed: for the log. */
function assertedClient(params: Request['params']): string | undefined {
  try {
    const { sub } = parseCompactToken(params.get('client_assertion') ?? '').payload
    return typeof sub === 'string' ? sub : undefined
  } catch {
    return undefined
  }
}

/**
 * Until the signature holds, every failure is the same (T3.9).
 * @throws Fault `invalid_client`, or `assertion_refused` for a claim of the client's own; `identity_unavailable` if its
 *   keys cannot be read
 */
async function proveByAssertion({ exchange, params }: Request, parts: Parts): Promise<Proven> {
  const { clientKeys, clock, people } = parts
  if (params.get('client_assertion_type') !== ASSERTION_TYPE) throw failed('another client_assertion_type')
  const jws = params.get('client_assertion')
  if (jws === undefined) throw failed('missing')
  const { checked, payload } = readAssertion(jws)
  const id = subjectOf(payload, params.get('client_id'))
  const found = await orUnavailable(people.findClient(id))
  const client = found !== undefined && maySign(found, checked) ? found : undefined
  const isGenuine = await clientKeys.haveSigned(jws, client, checked)
  if (client === undefined) throw failed('no such client, or one that may not use private_key_jwt')
  if (!isGenuine) throw failed('no key of the client has signed it')
  const setting = { ...audiencesOf(exchange, client, parts), now: clock.now() / 1000 }
  return { client, assertion: checkClaims(payload, setting) }
}

/** FAPI 2.0 has no RS256 (C6.1.9). */
const maySign = (client: Client, { alg }: JwsHeader): boolean =>
  client.authentication.includes(BY_KEY) && !(isFapi2(client) && alg === 'RS256')

const isFapi2 = (client: Client): boolean => securityOf(client).profile === 'fapi2'

/** The JWT in one canonical spelling (T3.2). */
function readAssertion(jws: string): { readonly checked: JwsHeader; readonly payload: Claims } {
  try {
    const { header, payload } = parseCompactToken(jws)
    return { checked: checkHeader(header, HEADERS, false), payload }
  } catch (thrown) {
    throw failed(toFault(thrown).facts.detail ?? 'not readable')
  }
}

function subjectOf({ iss, sub }: Claims, named: string | undefined): string {
  if (typeof sub !== 'string' || iss !== sub) throw failed('claim: iss and sub are not one client')
  if (named !== undefined && named !== sub) throw failed('client_id is another one')
  return sub
}

/** The issuer, the token endpoint, the endpoint called: from the configuration alone, never from the host of the request. */
function audiencesOf(
  { target }: Exchange,
  client: Client,
  { urls }: Pick<Parts, 'urls'>,
): Pick<Setting, 'audiences' | 'textOnly'> {
  const { issuer } = urls
  if (isFapi2(client)) return { audiences: new Set([issuer]), textOnly: true }
  const here = target instanceof Fault ? [] : [new URL(issuer).origin + target.path]
  return { audiences: new Set([issuer, `${issuer}/connect/token`, ...here]), textOnly: false }
}

/** How long an assertion may live, in seconds. */
const LONGEST_LIFE = 65 * 60
const CLOCK_SKEW = 10
/** The longest `jti`, in characters. */
const LONGEST_JTI = 256

interface Setting {
  readonly audiences: ReadonlySet<unknown>
  /** Whether a list is refused, also of one audience. */
  readonly textOnly: boolean
  /** The time of the check, in seconds since the epoch, with fraction. */
  readonly now: number
}

interface ClaimRule {
  readonly claim: string
  readonly says: string
  readonly holds: (value: unknown, setting: Setting) => boolean
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

const isPast: ClaimRule['holds'] = (value, { now }) =>
  value === undefined || (isTime(value) && value <= now + CLOCK_SKEW)

/** Every audience must be this service: another recipient of the assertion could use it here (RFC 7523 §3). */
const CLAIM_RULES: readonly ClaimRule[] = [
  {
    claim: 'aud',
    says: 'must be the issuer, the token endpoint or this endpoint, and no other address; by FAPI 2.0 the issuer alone, as a text',
    holds: (value, { audiences, textOnly }) => {
      const all: readonly unknown[] = Array.isArray(value) && !textOnly ? value : [value]
      return all.length > 0 && all.every((audience) => audiences.has(audience))
    },
  },
  {
    claim: 'exp',
    says: `must be a time to come, at most ${LONGEST_LIFE / 60} minutes ahead`,
    holds: (value, { now }) => isTime(value) && value > now && value <= now + LONGEST_LIFE,
  },
  { claim: 'iat', says: `must be no time more than ${CLOCK_SKEW} seconds ahead`, holds: isPast },
  { claim: 'nbf', says: `must be no time more than ${CLOCK_SKEW} seconds ahead`, holds: isPast },
  {
    claim: 'jti',
    says: `must be a text of 1 to ${LONGEST_JTI} characters`,
    holds: (value) => typeof value === 'string' && value.length > 0 && value.length <= LONGEST_JTI,
  },
]

/** @throws Fault `assertion_refused` that names the claim: only the client itself can have signed it */
function checkClaims(claims: Claims, setting: Setting): Assertion {
  const broken = CLAIM_RULES.find(({ claim, holds }) => !holds(claims[claim], setting))
  if (broken !== undefined)
    throw new Fault('assertion_refused', { say: `The claim ${broken.claim} ${broken.says}.` })
  return { jti: String(claims['jti']), exp: Number(claims['exp']) }
}

/** Kind of record: assertions that were used, by the SHA-256 of client and `jti`, until nobody would accept them. */
const ASSERTION = 'assertion'

/** An assertion counts once, over all nodes. Rejects with Fault `identity_unavailable`. */
const useAssertion = (
  { id }: Client,
  { exp, jti }: Assertion,
  { store }: Pick<Parts, 'store'>,
): Promise<boolean> => isFirstUse(store, ASSERTION, [id, jti], (exp + CLOCK_SKEW) * 1000)
