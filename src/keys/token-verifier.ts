import type { Claims, KeyStanding, TokenPolicy, TokenVerifier } from '../contracts/keys.ts'
import { parseJson } from '../http/json.ts'
import { Fault } from '../kernel/faults.ts'
import type { Clock } from '../kernel/clock.ts'
import { LONGEST_ACCESS_TOKEN } from '../kernel/lifetimes.ts'
import { isSignedBy } from './signatures.ts'

/** A public key of an issuer, and whether it is believed. */
export interface TrustedKey {
  readonly publicKey: CryptoKey
  readonly standing: KeyStanding
}

/** Where a judge gets the public keys of one issuer: the own ring, or a foreign issuer's key set. */
export interface KeyFinder {
  /**
   * Several where the issuer gives one `kid` to several keys. Undefined: the issuer has no such key for this algorithm.
   * `kid` is undefined where the token names none.
   * Rejects with Fault `token_judge_unavailable` where it cannot be told at the moment (C4.15).
   */
  find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined>
}

/**
 * The standing of one key, in the hands of whoever owns the key. It also remembers that somebody asked: a key set that
 * nobody uses need not be read again.
 */
export class Standing implements KeyStanding {
  #believed = true
  #asked = false

  isBelieved(): boolean {
    this.#asked = true
    return this.#believed
  }

  /** From now on nothing that this key has verified or signed is believed, wherever it is remembered. */
  end(): void {
    this.#believed = false
  }

  /** Whether somebody asked since the last time. */
  takeAsked(): boolean {
    const asked = this.#asked
    this.#asked = false
    return asked
  }
}

/** A compact JWS (RFC 7515 §7.1) taken apart; nothing of it is believed yet. */
export interface CompactToken {
  readonly header: Claims
  readonly payload: Claims
}

/** Characters. The headers of a request have a limit of their own; this one holds also where that is set high. */
const LONGEST = 16 * 1024
const LIMITS = { depth: 16, nodes: 2000 }

/** `detail` goes to the log: it must never hold a piece of the token. */
export const badToken = (detail: string, cause?: unknown): Fault =>
  new Fault('invalid_token', { detail, ...(cause !== undefined && { cause }) })

/**
 * Decoders accept several spellings of the same bytes (other last characters, padding, white space, `+/`): only the
 * one that encoding gives back is the token, so that a cache or a list keyed by its text cannot be inflated or
 * passed by (T3.2).
 */
function decodePart(part: string, name: string): Buffer {
  const bytes = Buffer.from(part, 'base64url')
  if (part === '' || bytes.toString('base64url') !== part) throw badToken(`${name}: not canonical base64url`)
  return bytes
}

/** JSON.parse takes the last of two equal keys, others the first: a token that has both means nothing (T3.3). */
function parseObject(bytes: Buffer, name: string): Claims {
  let value: unknown
  try {
    parseJson(bytes, LIMITS)
    // Read again by the common parser: a date of `1.7e9` is a number here, not a literal to be kept.
    value = JSON.parse(bytes.toString())
  } catch {
    // No cause: parsers quote what they read.
    throw badToken(`${name}: not strict JSON in UTF-8`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badToken(`${name}: not a JSON object`)
  return value as Claims
}

/** Throws Fault `invalid_token` on everything but one canonical spelling of a JWS of two JSON objects. */
export function parseCompactToken(token: string): CompactToken {
  if (token.length > LONGEST) throw badToken('too long')
  const [header, payload, signature, ...more] = token.split('.', 4)
  // Five parts are a JWE, two an unsecured token without its empty signature.
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0)
    throw badToken('not three parts')
  decodePart(signature, 'signature')
  return {
    header: parseObject(decodePart(header, 'header'), 'header'),
    payload: parseObject(decodePart(payload, 'payload'), 'payload'),
  }
}

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
