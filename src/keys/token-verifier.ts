import type { Claims, KeyStanding, TokenVerifier, TokenPolicy } from '../contracts/keys.ts'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { LONGEST_ACCESS_TOKEN } from '../kernel/lifetimes.ts'
import { badToken, parseCompactToken } from './compact-token.ts'
import type { KeyFinder, TrustedKey } from './key-finder.ts'
import { isSignedBy } from './signatures.ts'

/** Seconds, where the policy says nothing (T3.3 "far exp"). */
const LONGEST_LIFE = LONGEST_ACCESS_TOKEN / 1000

/** Seconds that the clocks of several nodes of one service may differ: a token must work the moment it is issued. */
const CLOCK_SKEW = 5

/**
 * Header members that make a verifier do something else than check one signature with a key of its own: bring a
 * key, fetch one, follow an extension, unpack (RFC 7515 §4.1, RFC 7797, RFC 7516 §4.1). Present means refused,
 * whatever the value: own tokens have none of them, and RFC 9068 needs none (T3.1).
 */
const FORBIDDEN = ['crit', 'b64', 'jwk', 'jku', 'x5u', 'x5c', 'enc', 'zip', 'cty', 'epk', 'p2c'] as const

interface Header {
  readonly alg: string
  readonly kid: string | undefined
}

/** `typ` is a media type: case-insensitive, "application/" may be left out (RFC 7515 §4.1.9). */
const plainType = (typ: string): string => typ.toLowerCase().replace(/^application\//, '')

function checkHeader(header: Claims, policy: TokenPolicy): Header {
  const forbidden = FORBIDDEN.find((member) => Object.hasOwn(header, member))
  if (forbidden !== undefined) throw badToken(`header: ${forbidden}`)
  const { alg, typ, kid } = header
  if (typeof alg !== 'string' || !policy.algorithms.includes(alg)) throw badToken('header: alg')
  if (typeof typ !== 'string' || !policy.typ.includes(plainType(typ))) throw badToken('header: typ')
  if (kid !== undefined && typeof kid !== 'string') throw badToken('header: kid')
  return { alg, kid }
}

const numericDate = (claims: Claims, name: string): number => {
  const value = claims[name]
  if (typeof value !== 'number' || !Number.isFinite(value)) throw badToken(`claim: ${name} is no number`)
  return value
}

const names = (audience: unknown, wanted: string): boolean =>
  audience === wanted || (Array.isArray(audience) && audience.includes(wanted))

/** `now` in seconds since the epoch, with fraction. */
function checkDates(claims: Claims, { leeway, longestLife = LONGEST_LIFE }: TokenPolicy, now: number): void {
  const exp = numericDate(claims, 'exp')
  const ahead = Math.max(leeway, CLOCK_SKEW)
  // RFC 7519 §4.1.4: not accepted on or after exp.
  if (now >= exp + leeway) throw badToken('claim: exp has passed')
  if (exp > now + longestLife + ahead) throw badToken('claim: exp is too far away')
  const iat = numericDate(claims, 'iat')
  if (iat > now + ahead) throw badToken('claim: iat is in the future')
  // Else it would be good in the last part of its life, when rules that were made before are over.
  if (exp - iat > longestLife) throw badToken('claim: exp is too far from iat')
  if (claims['nbf'] !== undefined && numericDate(claims, 'nbf') > now + ahead)
    throw badToken('claim: nbf is in the future')
}

function checkClaims(claims: Claims, policy: TokenPolicy, clock: Clock): void {
  if (claims['iss'] !== policy.issuer) throw badToken('claim: iss')
  if (!names(claims['aud'], policy.audience)) throw badToken('claim: aud')
  checkDates(claims, policy, clock.now() / 1000)
}

/** Answers the key that the token was signed with. */
async function checkSignature(token: string, { alg, kid }: Header, keys: KeyFinder): Promise<KeyStanding> {
  const found = await keys.find(kid, alg)
  if (found === undefined) throw badToken('header: kid names no key of this issuer for this algorithm')
  for (const { publicKey, standing } of found) if (await isGenuine(token, publicKey, alg)) return standing
  throw badToken('signature')
}

const isGenuine = (token: string, key: TrustedKey['publicKey'], alg: string): Promise<boolean> =>
  isSignedBy(token, key, alg).catch((cause: unknown) => {
    throw new Fault('token_judge_unavailable', { cause, detail: 'the key cannot be used' })
  })

/**
 * Judges the tokens of one issuer (C4.4). What is cheap is checked first, claims included: a token of another
 * audience or of yesterday then costs neither a signature check nor a fetch of keys.
 */
export function createTokenVerifier(keys: KeyFinder, clock: Clock): TokenVerifier {
  return {
    async verify(token, policy) {
      const { header, payload } = parseCompactToken(token)
      const checked = checkHeader(header, policy)
      checkClaims(payload, policy, clock)
      return { claims: payload, key: await checkSignature(token, checked, keys) }
    },
  }
}
