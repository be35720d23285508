import { parseJson } from '../http/json.ts'
import type { Claims } from '../contracts/keys.ts'
import { Fault } from '../kernel/faults.ts'

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
