import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Proof, ProofPurpose, ProofVerifier } from './proof.ts'
import type { NonceMode } from './schema.ts'
import type { Claims } from '../../base/contracts/people/keys.ts'
import { PROOF_NONCE_HEADER } from '../../base/http/head/end-to-end-headers.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { verifyHere } from '../../identity/keys/verify/signatures.ts'
import { decodePart, numericDate, parseObject } from '../../identity/keys/verify/token-verifier.ts'
import type { Nonces } from './nonces.ts'
import { badProof, type ProofKey, readProofHeader } from './proof-keys.ts'
import { canonicalUrl } from './proof-url.ts'

/** The longest proof, and the longest `jti`, in characters. */
const LONGEST_PROOF = 4096
const LONGEST_JTI = 256

/** Keys whose proofs are verified without reading the key anew. One is at most as long as a proof. */
const KNOWN_KEYS = 1000

/** How old a proof without a nonce may be, and how far ahead of our clock, in seconds. `exp` and `nbf` may differ by `AHEAD`. */
const BEFORE = 60
const AHEAD = 10

interface ProofParts {
  readonly clock: Pick<Clock, 'now'>
  /** Undefined: proofs are judged by the clock alone, even if they have a nonce. */
  readonly nonces?: Nonces | undefined
  /** Whether a proof without a nonce is refused, though the clock fits. */
  readonly needsNonce?: boolean
}

/** The rules of a configuration for nonces, as a verifier takes them. */
export const nonceRules = (mode: NonceMode, nonces: Nonces): Omit<ProofParts, 'clock'> =>
  mode === 'off' ? {} : { nonces, needsNonce: mode === 'required' }

/**
 * Verifies proofs of possession (RFC 9449 §4.3), but for their replay. All is done at once by node:crypto: a signature of
 * a known key costs less than handing it to another thread would.
 */
export function openProofVerifier(parts: ProofParts): ProofVerifier {
  /** By the text of the header. Only of proofs that held, so that nobody fills it with keys that he does not have. */
  const keys = new LRUCache<string, ProofKey>({ max: KNOWN_KEYS })
  return {
    verify(text, purpose) {
      const [header, payload, signature] = split(text)
      const known = keys.get(header)
      const key = known ?? readProofHeader(readPart(header, 'header'))
      if (purpose.jkt !== undefined && purpose.jkt !== key.jkt)
        throw new Fault('invalid_token', { detail: 'bound to another key than that of the proof' })
      const claims = readPart(payload, 'payload')
      checkPurpose(claims, purpose)
      checkDates(claims, parts.clock.now() / 1000)
      const jti = jtiOf(claims)
      const lifetime = lifetimeOf(claims, parts)
      if (!isCanonical(signature) || !verifyHere(text, key.key))
        throw badProof('Its signature does not verify.')
      if (known === undefined) keys.set(header, key)
      return { jkt: key.jkt, id: hash('sha256', `${key.jkt} ${jti}`, 'base64url'), ...lifetime }
    },
  }
}

function split(text: string): readonly [string, string, string] {
  if (text.length > LONGEST_PROOF) throw badProof(`It is longer than ${LONGEST_PROOF} characters.`)
  const [header, payload, signature, ...more] = text.split('.', 4)
  // Two lines of the header have become one with a comma, which no part may hold.
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0)
    throw badProof('It is no JWT: send one header line with one proof.')
  return [header, payload, signature]
}

/** One spelling only, and no duplicate keys. No cause: parsers quote what they read. */
function readPart(part: string, name: string): Claims {
  try {
    return parseObject(decodePart(part, name), name)
  } catch {
    throw badProof(`Its ${name} is not canonical base64url of a JSON object.`)
  }
}

const isCanonical = (part: string): boolean => Buffer.from(part, 'base64url').toString('base64url') === part

/** @throws Fault `invalid_dpop_proof` if it was made for another request, or another token */
function checkPurpose({ ath, htm, htu }: Claims, { method, token, url }: ProofPurpose): void {
  if (htm !== method) throw badProof('Its htm is not the method of the request.')
  if (typeof htu !== 'string' || (htu !== url && canonicalUrl(htu) !== url))
    throw badProof('Its htu is not the address that this service has for the request.')
  if (token !== undefined && ath !== hash('sha256', token, 'base64url'))
    throw badProof('Its ath is not the hash of the access token.')
}

function jtiOf({ jti }: Claims): string {
  if (typeof jti !== 'string' || jti === '' || jti.length > LONGEST_JTI)
    throw badProof(`Its jti is missing, or longer than ${LONGEST_JTI} characters.`)
  return jti
}

/**
 * RFC 7519 §4.1.4 and §4.1.5, by the clock of this service, with a nonce too: a client that sets these says what counts.
 * @throws Fault `invalid_dpop_proof`
 */
function checkDates({ exp, nbf }: Claims, now: number): void {
  if (exp !== undefined && !(isDate(exp) && now < exp + AHEAD))
    throw badProof('Its exp has passed, or is no number: leave it out, or set the clock.')
  if (nbf !== undefined && !(isDate(nbf) && nbf <= now + AHEAD))
    throw badProof('Its nbf is in the future, or no number: leave it out, or set the clock.')
}

const isDate = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

/** With a nonce of ours the client's clock does not matter. @throws Fault `invalid_dpop_proof`, `use_dpop_nonce` */
function lifetimeOf(claims: Claims, parts: ProofParts): Pick<Proof, 'expiresAt' | 'newerNonce'> {
  const iat = iatOf(claims)
  const { nonces } = parts
  const { nonce } = claims
  if (nonces !== undefined && nonce !== undefined) return lifetimeBy(nonce, nonces)
  const age = parts.clock.now() / 1000 - iat
  const isFresh = age <= BEFORE && age >= -AHEAD
  if (nonces !== undefined && (!isFresh || parts.needsNonce === true)) throw nonceNeeded(nonces)
  if (!isFresh) throw badProof(`Its iat is more than ${BEFORE} seconds old, or in the future: set the clock.`)
  // The time itself is still good.
  return { expiresAt: (iat + BEFORE) * 1000 + 1 }
}

function iatOf(claims: Claims): number {
  try {
    return numericDate(claims, 'iat')
  } catch {
    throw badProof('Its iat is missing, or no number.')
  }
}

function lifetimeBy(nonce: unknown, nonces: Nonces): Pick<Proof, 'expiresAt' | 'newerNonce'> {
  const expiresAt = typeof nonce === 'string' ? nonces.goodUntil(nonce) : undefined
  if (expiresAt === undefined) throw nonceNeeded(nonces)
  const current = nonces.current()
  const isNewer = (nonces.goodUntil(current) ?? 0) > expiresAt
  return { expiresAt, ...(isNewer && { newerNonce: current }) }
}

const nonceNeeded = (nonces: Nonces): Fault =>
  new Fault('use_dpop_nonce', { headers: nonceHeader(nonces.current()) })

/** The header of nonces for proofs (RFC 9449 §8.2). */
export const nonceHeader = (nonce: string): Readonly<Record<string, string>> => ({
  [PROOF_NONCE_HEADER]: nonce,
})
