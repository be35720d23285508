import { Buffer } from 'node:buffer'
import type { ChallengeError } from '../../kernel/fault-table.ts'
import type { Head } from './head.ts'
import { isToken } from './header-text.ts'

export interface AuthorizationRules {
  /** The setting of C4.14: the header's name counts only if spelled exactly `Authorization`. */
  readonly strictHeaderNames: boolean
  /** The setting of C6.1.3: the scheme counts in any case, as RFC 9110 §11.1 says. */
  readonly anySchemeCase: boolean
}

type NoCredentials = { readonly kind: 'none' } | { readonly kind: 'other-scheme' }
type Malformed = { readonly kind: 'malformed' }

export type CallCredentials = NoCredentials | Malformed | { readonly kind: 'token'; readonly token: string }

export interface ClientPair {
  readonly id: string
  readonly secret: string
}

type BasicCredentials =
  | NoCredentials
  | Malformed
  /** In the order to try (C6.1.2): as sent, then form-decoded where that is something else. */
  | { readonly kind: 'pairs'; readonly pairs: readonly [ClientPair, ...ClientPair[]] }

const NONE: NoCredentials = { kind: 'none' }
const OTHER_SCHEME: NoCredentials = { kind: 'other-scheme' }
const MALFORMED: Malformed = { kind: 'malformed' }

/** The header's value, without the white space around it. A repeated line never gets this far (C3.6). */
function authorizationOf(head: Head, { strictHeaderNames }: AuthorizationRules): string | undefined {
  if (!strictHeaderNames) return head.headers.authorization
  const at = head.rawHeaders.findIndex((text, index) => index % 2 === 0 && text === 'Authorization')
  return at === -1 ? undefined : head.rawHeaders[at + 1]
}

const startsInAnyCase = (value: string, scheme: string): boolean =>
  value.slice(0, scheme.length).toLowerCase() === scheme.toLowerCase()

/**
 * The text behind the scheme and its spaces. The scheme's case counts, unless the rules say otherwise (C4.14, C6.1.2).
 * Empty if the scheme is followed by nothing, or by something that is no space.
 */
function afterScheme(
  value: string | undefined,
  scheme: string,
  { anySchemeCase }: Pick<AuthorizationRules, 'anySchemeCase'>,
): string | NoCredentials {
  if (value === undefined || value === '') return NONE
  if (!value.startsWith(scheme) && !(anySchemeCase && startsInAnyCase(value, scheme))) return OTHER_SCHEME
  let at = scheme.length
  // A character of a token behind `Bearer` makes it the name of another scheme.
  if (value[at] !== ' ') return isToken(value[at] ?? '') ? OTHER_SCHEME : ''
  while (value[at] === ' ') at += 1
  return value.slice(at)
}

/** The b64token of RFC 6750 §2.1; RFC 9449 §7.1 has the same as token68. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/

const NEVER = (): boolean => false

/**
 * The bearer token of a request (C4.13, C4.14). `none` and `other-scheme` are "no credentials"; `malformed` is
 * `invalid_token`: the scheme alone, or anything but one token after it.
 * @param isKnown whether this very text was found to be a token before: to look at each of its characters would cost
 *   more than all other checks of a call together
 */
export function parseBearer(
  head: Head,
  rules: AuthorizationRules,
  isKnown: (token: string) => boolean = NEVER,
): CallCredentials {
  return oneToken(afterScheme(authorizationOf(head, rules), 'Bearer', rules), isKnown)
}

const ANY_CASE = { anySchemeCase: true }

/** The token of a request by another scheme, in any case (C4.14). Otherwise as `parseBearer`. */
export function parseToken(
  head: Head,
  scheme: string,
  rules: AuthorizationRules,
  isKnown: (token: string) => boolean = NEVER,
): CallCredentials {
  return oneToken(afterScheme(authorizationOf(head, rules), scheme, ANY_CASE), isKnown)
}

const oneToken = (token: string | NoCredentials, isKnown: (token: string) => boolean): CallCredentials => {
  if (typeof token !== 'string') return token
  return isKnown(token) || TOKEN.test(token) ? { kind: 'token', token } : MALFORMED
}

/** The bit by which `D` becomes `d`. */
const LOWER_CASE = 0x20

/** Whether the credentials are of a scheme, in any case. Every call asks this: of most the first character tells. */
export const usesScheme = ({ headers: { authorization } }: Head, scheme: string): boolean =>
  authorization !== undefined &&
  (authorization.charCodeAt(0) | LOWER_CASE) === (scheme.charCodeAt(0) | LOWER_CASE) &&
  typeof afterScheme(authorization, scheme, ANY_CASE) === 'string'

/** The client's id and secret by HTTP Basic (C6.1.2, RFC 7617): strict base64 of UTF-8, no control characters. */
export function parseBasic(head: Head, rules: AuthorizationRules): BasicCredentials {
  const encoded = afterScheme(authorizationOf(head, rules), 'Basic', rules)
  if (typeof encoded !== 'string') return encoded
  const text = decodeBase64(encoded)
  const colon = text?.indexOf(':') ?? -1
  if (text === undefined || colon === -1) return MALFORMED
  const sent = { id: text.slice(0, colon), secret: text.slice(colon + 1) }
  const decoded = formDecodePair(sent)
  return { kind: 'pairs', pairs: decoded === undefined ? [sent] : [sent, decoded] }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
// RFC 7617 §2 forbids exactly these.
const CONTROLS = /[\x00-\x1f\x7f]/

function decodeBase64(encoded: string): string | undefined {
  const bytes = Buffer.from(encoded, 'base64')
  // Node skips what is no base64: only what encodes back to the same text was base64.
  if (bytes.length === 0 || bytes.toString('base64') !== encoded) return undefined
  try {
    const text = utf8.decode(bytes)
    return CONTROLS.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

const FORM_ENCODED = /[+%]/

/**
 * Decodes id and secret, which are form-encoded before they are joined (RFC 6749 §2.3.1). Undefined where that makes no
 * other pair.
 */
function formDecodePair(sent: ClientPair): ClientPair | undefined {
  if (!FORM_ENCODED.test(sent.id) && !FORM_ENCODED.test(sent.secret)) return undefined
  try {
    const decoded = { id: formDecode(sent.id), secret: formDecode(sent.secret) }
    return CONTROLS.test(decoded.id) || CONTROLS.test(decoded.secret) ? undefined : decoded
  } catch {
    return undefined
  }
}

const formDecode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '))

interface Challenge {
  readonly scheme?: string
  readonly realm: string
  readonly error?: ChallengeError | undefined
  /** Fixed text. */
  readonly description?: string | undefined
  /** Space-delimited. */
  readonly scope?: string | undefined
  /** The algorithms of proofs, space-delimited. */
  readonly algs?: string | undefined
  /** Where the metadata of the API is (RFC 9728 §5.1). */
  readonly resourceMetadata?: string | undefined
}

/**
 * The value of WWW-Authenticate (C4.13, RFC 6750 §3, RFC 9449 §7.1), of Bearer unless told otherwise. RangeError if a part
 * holds what a header can't carry.
 */
export function tokenChallenge({
  scheme = 'Bearer',
  realm,
  error,
  description,
  scope,
  algs,
  resourceMetadata,
}: Challenge): string {
  const parts = {
    realm,
    error,
    error_description: description,
    scope,
    algs,
    resource_metadata: resourceMetadata,
  }
  const written = Object.entries(parts).flatMap(([name, text]) =>
    text === undefined ? [] : [`${name}=${quotedString(text)}`],
  )
  return `${scheme} ${written.join(', ')}`
}

/** A quoted string (RFC 9110 §5.6.4), in ASCII. */
export function quotedString(text: string): string {
  if (!/^[\t -~]*$/.test(text)) throw new RangeError('a quoted string holds printable ASCII only')
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}
