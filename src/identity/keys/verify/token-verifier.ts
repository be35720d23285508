import { Buffer } from 'node:buffer'
import type {
  Caller,
  Claims,
  JwsHeader,
  KeyStanding,
  TokenPolicy,
  TokenVerifier,
  Verified,
} from '../../../base/contracts/people/keys.ts'
import { isJsonObject, type JsonValue, parseJson } from '../../../base/http/body/json.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { Fault, type FaultCode } from '../../../base/kernel/faults.ts'
import { LONGEST_ACCESS_TOKEN } from '../../../base/kernel/lifetimes.ts'
import { isSignedBy, type PublicKey } from './signatures.ts'

/** A public key of an issuer, and whether it is still trusted. */
export interface TrustedKey {
  readonly publicKey: PublicKey
  readonly standing: KeyStanding
}

/** The public keys of one issuer: the service's own key ring, or the key set of a foreign issuer. */
export interface KeyFinder {
  /**
   * The keys with this `kid`: several if the issuer uses one `kid` for several keys. Resolves with undefined if the
   * issuer has no such key for this algorithm. `kid` is undefined if the token has none. Rejects with Fault
   * `token_judge_unavailable` if the keys cannot be read at the moment (C4.15).
   */
  find(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined>
  /** The same by what is known in this process. Nothing is read, asked or remembered. */
  findLocally(kid: string | undefined, algorithm: string): Promise<readonly TrustedKey[] | undefined>
}

type FindKeys = KeyFinder['find']

/** Only the owner of the key can end it. It remembers that it was asked: an unused key set is not read again. */
export class Standing implements KeyStanding {
  #trusted = true
  #asked = false

  isTrusted(): boolean {
    this.#asked = true
    return this.#trusted
  }

  /** From now on no token that this key has signed or verified is accepted, even from a cache. */
  end(): void {
    this.#trusted = false
  }

  /** Whether `isTrusted` was called since the last call of this. */
  takeAsked(): boolean {
    const asked = this.#asked
    this.#asked = false
    return asked
  }
}

/** The parts of a compact JWS (RFC 7515 §7.1). Nothing of it is trusted yet. */
interface CompactToken {
  readonly text: string
  readonly header: Claims
  readonly payload: Claims
}

/** The longest token, in characters. Request headers have a limit of their own; this one holds even if that is set high. */
export const LONGEST_TOKEN = 16 * 1024
const LIMITS = { depth: 16, nodes: 2000, converts: true }
/** The first byte of a byte order mark, which the reader would skip. No JSON begins with it. */
const BYTE_ORDER_MARK = 0xef

/** `detail` goes to the log, so it must never contain a piece of the token. */
export const badToken = (detail: string, cause?: unknown): Fault =>
  new Fault('invalid_token', { detail, ...(cause !== undefined && { cause }) })

/**
 * Decoders accept several spellings of the same bytes: other last characters, padding, white space, `+/`. Only the
 * spelling that the encoder produces is accepted. Otherwise one token could fill a cache that is keyed by its text,
 * or get past a list of revoked ones (T3.2).
 */
export function decodePart(part: string, name: string): Buffer {
  const bytes = Buffer.from(part, 'base64url')
  if (part === '' || bytes.toString('base64url') !== part) throw badToken(`${name}: not canonical base64url`)
  return bytes
}

/** A token with two equal keys is refused: JSON.parse takes the last one, other parsers the first (T3.3). */
export function parseObject(bytes: Buffer, name: string): Claims {
  let value: JsonValue
  try {
    value = parseJson(bytes, LIMITS)
  } catch {
    // No cause, because parsers quote what they read.
    throw badToken(`${name}: not strict JSON in UTF-8`)
  }
  if (bytes[0] === BYTE_ORDER_MARK || !isJsonObject(value)) throw badToken(`${name}: not a JSON object`)
  return value
}

/** The header of the token that was parsed last: tokens of one key have the same header. */
let lastHeader = { text: '', header: {} as Claims }

function parseHeader(text: string): Claims {
  if (text === '' || text !== lastHeader.text)
    lastHeader = { text, header: parseObject(decodePart(text, 'header'), 'header') }
  return lastHeader.header
}

/** Throws Fault `invalid_token` on everything but one canonical spelling of a JWS of two JSON objects. */
export function parseCompactToken(token: string): CompactToken {
  if (token.length > LONGEST_TOKEN) throw badToken('too long')
  const [header, payload, signature, ...more] = token.split('.', 4)
  // Five parts are a JWE, two an unsecured token without its empty signature.
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0)
    throw badToken('not three parts')
  decodePart(signature, 'signature')
  return {
    text: token,
    header: parseHeader(header),
    payload: parseObject(decodePart(payload, 'payload'), 'payload'),
  }
}

/** How long a token may live if the policy says nothing, in seconds (T3.3). */
export const LONGEST_LIFE = LONGEST_ACCESS_TOKEN / 1000

/** How much clocks of several machines may differ, in seconds. A token must work at the moment when it is issued. */
const CLOCK_SKEW = 5

/**
 * Header members that make a verifier do more than check a signature with a key it knows: use the token's own key,
 * fetch a key, follow an extension, decrypt (RFC 7515 §4.1, RFC 7797, RFC 7516 §4.1). A token with one of them is
 * refused for any value. Own tokens have none, and RFC 9068 needs none (T3.1).
 */
const FORBIDDEN = ['crit', 'b64', 'jwk', 'jku', 'x5u', 'x5c', 'enc', 'zip', 'cty', 'epk', 'p2c'] as const

/** `typ` is a media type: case-insensitive, and `application/` may be omitted (RFC 7515 §4.1.9). */
export const plainType = (typ: string): string => typ.toLowerCase().replace(/^application\//, '')

/** @param needsType false: `typ` may be missing (RFC 7523 names none). @throws Fault `invalid_token` */
export function checkHeader(
  header: Claims,
  policy: Pick<TokenPolicy, 'algorithms' | 'typ'>,
  needsType = true,
): JwsHeader {
  const forbidden = FORBIDDEN.find((member) => Object.hasOwn(header, member))
  if (forbidden !== undefined) throw badToken(`header: ${forbidden}`)
  const { alg, typ, kid } = header
  if (typeof alg !== 'string' || !policy.algorithms.includes(alg)) throw badToken('header: alg')
  if ((needsType || typ !== undefined) && !(typeof typ === 'string' && policy.typ.includes(plainType(typ))))
    throw badToken('header: typ')
  if (kid !== undefined && typeof kid !== 'string') throw badToken('header: kid')
  return { alg, kid }
}

export const numericDate = (claims: Claims, name: string): number => {
  const value = claims[name]
  if (typeof value !== 'number' || !Number.isFinite(value)) throw badToken(`claim: ${name} is no number`)
  return value
}

const names = (audience: unknown, wanted: string | undefined): boolean =>
  wanted === undefined || audience === wanted || (Array.isArray(audience) && audience.includes(wanted))

/** `now` in seconds since the epoch, with fraction. */
function checkDates(claims: Claims, { leeway, longestLife = LONGEST_LIFE }: TokenPolicy, now: number): void {
  const exp = numericDate(claims, 'exp')
  const ahead = Math.max(leeway, CLOCK_SKEW)
  // RFC 7519 §4.1.4: not accepted on or after exp.
  if (now >= exp + leeway) throw badToken('claim: exp has passed')
  if (exp > now + longestLife + ahead) throw badToken('claim: exp is too far away')
  const iat = numericDate(claims, 'iat')
  if (iat > now + ahead) throw badToken('claim: iat is in the future')
  // Otherwise the token could outlive the revocation rules that end it.
  if (exp - iat > longestLife) throw badToken('claim: exp is too far from iat')
  if (claims['nbf'] !== undefined && numericDate(claims, 'nbf') > now + ahead)
    throw badToken('claim: nbf is in the future')
}

/** Why a token is refused, if it proves to be genuine; undefined for what its bearer must not learn (C4.17a). */
function tellableRefusal(claims: Claims, policy: TokenPolicy, clock: Clock): FaultCode | undefined {
  const { iss, aud, exp } = claims
  if (iss !== policy.issuer) return undefined
  if (!names(aud, policy.audience)) return 'misdirected_token'
  return typeof exp === 'number' && exp + policy.leeway <= clock.now() / 1000 ? 'expired_token' : undefined
}

/** A SHA-256 in base64url (RFC 9449 §6.1). */
const THUMBPRINT = /^[\w-]{43}$/

/**
 * The thumbprint of the key that a token is bound to; undefined if it is bound to none. One that names a key in another way
 * as well, such as by a certificate, is bound to both, and only one could be checked.
 * @throws Fault `invalid_token`
 */
export function boundKey({ cnf }: Claims): string | undefined {
  if (cnf === undefined) return undefined
  const { jkt, ...others } = (cnf ?? {}) as { readonly jkt?: unknown }
  if (typeof jkt !== 'string' || !THUMBPRINT.test(jkt) || Object.keys(others).length > 0)
    throw badToken('claim: cnf names a key otherwise than by jkt alone')
  return jkt
}

/** RFC 7800 §3.1: such a token is good only with a proof of the key, which is asked for later (C4.4a). */
function checkConfirmation(claims: Claims, { confirmation = 'refuse' }: TokenPolicy): void {
  if (confirmation === 'refuse') throw badToken('claim: cnf, the token is bound to a key')
  if (confirmation === 'prove') boundKey(claims)
}

/** @throws Fault `invalid_token` */
export function checkClaims(claims: Claims, policy: TokenPolicy, clock: Clock): void {
  if (claims['iss'] !== policy.issuer) throw badToken('claim: iss')
  if (!names(claims['aud'], policy.audience)) throw badToken('claim: aud')
  if (Object.hasOwn(claims, 'cnf')) checkConfirmation(claims, policy)
  checkDates(claims, policy, clock.now() / 1000)
}

/** A token whose header fits the policy, and who waits for its verification. */
interface CheckedToken {
  readonly text: string
  readonly header: JwsHeader
  readonly caller: Caller | undefined
}

/** Resolves with the key that signed the token. */
async function checkSignature(token: CheckedToken, find: FindKeys): Promise<KeyStanding> {
  const { alg, kid } = token.header
  const found = await find(kid, alg)
  if (found === undefined) throw badToken('header: kid names no key of this issuer for this algorithm')
  for (const { publicKey, standing } of found) if (await isGenuine(token, publicKey)) return standing
  throw badToken('signature')
}

const isGenuine = ({ text, header, caller }: CheckedToken, key: PublicKey): Promise<boolean> =>
  isSignedBy(text, key, header.alg, caller).catch((cause: unknown) => {
    if (cause instanceof Fault) throw cause
    throw new Fault('token_judge_unavailable', { cause, detail: 'the key cannot be used' })
  })

/** As TokenVerifier; a token that was parsed before is not parsed again. */
interface CompactTokenVerifier extends TokenVerifier {
  verify(token: string | CompactToken, policy: TokenPolicy, caller?: Caller): Promise<Verified>
  verifyLocally(token: string | CompactToken, policy: TokenPolicy): Promise<Verified>
}

/**
 * Verifies the tokens of one issuer (C4.4). Cheap checks come first, claims included: a token for another audience,
 * or an expired one, costs no reading of keys, and a signature check only where the policy `tellsWhy`.
 */
export function createTokenVerifier(keys: KeyFinder, clock: Clock): CompactTokenVerifier {
  const find: FindKeys = (kid, algorithm) => keys.find(kid, algorithm)
  const findLocally: FindKeys = (kid, algorithm) => keys.findLocally(kid, algorithm)
  /** The refusal, or what its bearer may learn instead: by the keys known here, because nothing is read for it. */
  const refusalOf = async (
    refusal: unknown,
    token: CheckedToken,
    claims: Claims,
    policy: TokenPolicy,
  ): Promise<unknown> => {
    const code = policy.tellsWhy === true ? tellableRefusal(claims, policy, clock) : undefined
    if (code === undefined || !(refusal instanceof Fault)) return refusal
    const key = await checkSignature(token, findLocally).catch(() => undefined)
    return key?.isTrusted() === true ? new Fault(code, refusal.facts) : refusal
  }
  const verifyBy = async (
    token: string | CompactToken,
    policy: TokenPolicy,
    findKeys: FindKeys,
    caller?: Caller,
  ): Promise<Verified> => {
    const { text, header, payload } = typeof token === 'string' ? parseCompactToken(token) : token
    const checked = { text, header: checkHeader(header, policy), caller }
    try {
      checkClaims(payload, policy, clock)
    } catch (refusal) {
      throw await refusalOf(refusal, checked, payload, policy)
    }
    return { claims: payload, key: await checkSignature(checked, findKeys) }
  }
  return {
    verify: (token, policy, caller) => verifyBy(token, policy, find, caller),
    verifyLocally: (token, policy) => verifyBy(token, policy, findLocally),
  }
}

/** Only characters of base64url; a part may be empty, such as the signature of an unsecured token. */
const PART = /^[A-Za-z0-9_-]*$/

/** The number of parts of a compact JWS (RFC 7515 §7.1) and of a compact JWE (RFC 7516 §7.1). */
const JOSE_PARTS: ReadonlySet<number> = new Set([3, 5])

/**
 * The beginning of a JSON object with a member, such as `{"alg":`. Of random bytes one in 256 begin with the brace, and one
 * in nine million like this.
 */
const HEADER = /^\s*\{\s*"[\x20-\x7e]{5}/

/**
 * Whether an access token is opaque: only its issuer knows what it means. All others are judged here by their
 * signature, and are never sent to an introspection endpoint: an endpoint might accept what the rules here refuse, or
 * would learn a token of another issuer (C11.2).
 *
 * A token is not opaque if it has three or five parts of base64url, with any content, or if its first part can be
 * read as the beginning of a header, however it is spelled and however many parts follow.
 */
export function isOpaque(token: string): boolean {
  // More than five dots are no form of JOSE; what follows them need not be split.
  const parts = token.split('.', 7)
  if (JOSE_PARTS.has(parts.length) && parts.every((part) => PART.test(part))) return false
  // Node's decoder skips characters that are no base64, as lenient parsers do.
  const first = Buffer.from(parts[0] ?? '', 'base64url').toString('latin1')
  return !HEADER.test(first)
}
