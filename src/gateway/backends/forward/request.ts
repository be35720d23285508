import { LRUCache } from 'lru-cache'
import type { Call } from '../../../base/contracts/calls/backend.ts'
import type { KeyStanding, Signer } from '../../../base/contracts/people/keys.ts'
import type { Place } from '../../../base/contracts/people/places.ts'
import type { Principal } from '../../../base/contracts/people/principal.ts'
import { forwardedLines } from '../../../base/http/head/addresses.ts'
import { foldName } from '../../../base/http/head/end-to-end-headers.ts'
import { followedBy, headerLine, type HeaderText, NO_HEADERS } from '../../../base/http/head/header-text.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { compileFixedHeaders } from '../templates/places.ts'
import type { HttpBackendRules, Identify } from './rules.ts'

/** Printable ASCII without `%`, and no space at the ends, which a receiver would trim. */
const PLAIN = /^(?:[!-$&-~](?:[ -$&-~]*[!-$&-~])?)?$/
// Without the look behind it, each space of a long run would be tried as the first one: quadratic (T2.9).
const UNSAFE = /^ +|(?<! ) +$|[^ -$&-~]+/g

/**
 * A value that is safe in one header line (no CR, LF or other control) and stands for one text only:
 * percent-encoded UTF-8 wherever it is not printable ASCII, `%` itself included. Upstreams decode it once.
 */
export const headerValue = (text: string): string =>
  PLAIN.test(text)
    ? text
    : text
        .toWellFormed()
        .replace(UNSAFE, (part) => encodeURIComponent(part).replaceAll(/[\x00-\x1f\x7f]/g, hex))

const hex = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`

/** `identity: headers`. */
export const identifyByHeaders: Identify = ({ principal, place }) => {
  if (principal === undefined || place === undefined) return NO_HEADERS
  const { business, fund } = place
  const text = followedBy(callerOf(principal), headerLine('x-postern-business', headerValue(business)))
  return fund === undefined ? text : followedBy(text, headerLine('x-postern-fund', headerValue(fund)))
}

/** `identity: none`. */
export const identifyNobody: Identify = () => NO_HEADERS

/** A principal is one object for all calls with one access token. */
const callers = new WeakMap<Principal, HeaderText>()

function callerOf(principal: Principal): HeaderText {
  const known = callers.get(principal)
  if (known !== undefined) return known
  const { subject, client, isMachine, scope, issuer, issuerName } = principal
  // The subject of a machine is its own id, which a service must not take for a person's (RFC 9068 §5).
  let text = isMachine ? NO_HEADERS : headerLine('x-postern-subject', headerValue(subject))
  // C11.2: a subject or a client of one issuer is not that of another.
  if (issuerName !== undefined) text = followedBy(text, headerLine('x-postern-issuer', headerValue(issuer)))
  text = followedBy(text, headerLine('x-postern-client', headerValue(client)))
  text = followedBy(text, headerLine('x-postern-scope', headerValue(scope)))
  callers.set(principal, text)
  return text
}

/** How long a signed token is valid, in seconds. Upstreams reject it after that. */
const LIFE = 60
/** How long a token is sent with further calls, in milliseconds: the service that gets it last has as long again to check it. */
const REUSE = (LIFE / 2) * 1000
/**
 * How many tokens are kept per principal: a client that calls for thousands of funds in half a minute pays a signature for
 * some of them. In a Map, because an lru-cache reserves room for all its entries when it is made, and there is one per
 * principal.
 */
const MOST_KEPT = 64

interface Kept {
  readonly header: HeaderText
  /** The key that signed it: where that is withdrawn, upstreams refuse the token. */
  readonly key: KeyStanding
  /** Until when the token is sent, by Clock.monotonic(). */
  readonly until: number
}

/**
 * `identity: token`: a signed token in `X-Postern-Token`, whose audience is the backend's name. Kept per principal and
 * place, so that the hot path does not sign; a principal is one object for all calls with one access token, and what is
 * kept goes with it. README.md says how upstreams check it.
 */
export function identifyByToken(signer: Signer, backend: string, clock: Clock): Identify {
  const kept = new WeakMap<Principal, Map<string, Kept>>()
  return (call) => {
    const { principal, place } = call
    if (principal === undefined || place === undefined) return NO_HEADERS
    const own = tokensOf(kept, principal)
    // A code holds no slash, so no two places share a name.
    const name = place.fund === undefined ? place.business : `${place.business}/${place.fund}`
    const known = own.get(name)
    const now = clock.monotonic()
    if (known !== undefined && now < known.until && known.key.isTrusted()) return known.header
    const signed = signer.sign(claimsOf(call.issuer, principal, place, backend, clock), {
      typ: 'postern-call+jwt',
      algorithm: 'ES256',
    })
    return signed.then(({ token, key }) => {
      const header = headerLine('x-postern-token', token)
      if (own.size >= MOST_KEPT) own.clear()
      own.set(name, { header, key, until: now + REUSE })
      return header
    })
  }
}

function tokensOf(kept: WeakMap<Principal, Map<string, Kept>>, principal: Principal): Map<string, Kept> {
  const known = kept.get(principal)
  if (known !== undefined) return known
  const made = new Map<string, Kept>()
  kept.set(principal, made)
  return made
}

/** Nothing in it says which access token it came with: it stands for that one for a minute, and for nothing else. */
function claimsOf(
  issuer: string,
  principal: Principal,
  { business, fund }: Place,
  audience: string,
  clock: Clock,
) {
  const issuedAt = Math.floor(clock.now() / 1000)
  return {
    iss: issuer,
    aud: audience,
    ...(!principal.isMachine && { sub: principal.subject }),
    client_id: principal.client,
    scope: principal.scope,
    business,
    ...(fund !== undefined && { fund }),
    iat: issuedAt,
    exp: issuedAt + LIFE,
  }
}

/** The header of `credentials` takes the place of a client's, as the configured headers do. */
type RequestHeaderRules = Pick<
  HttpBackendRules,
  'vendor' | 'format' | 'payload' | 'types' | 'forwarded' | 'forwardAuthorization' | 'credentials' | 'headers'
>

/** Writes the headers of the upstream request (C8.2), but for who calls, credentials, and what frames it. */
export type RequestHeaders = (call: Call) => HeaderText

/** None of the client's headers has one of Postern's own names: those were taken out (base/http/head/header-text.ts). */
export function compileRequestHeaders(rules: RequestHeaderRules): RequestHeaders {
  const asked = compileRequested(rules)
  const { credentials } = rules
  const replaced = new Set([
    ...(credentials === undefined ? [] : [foldName(credentials.name)]),
    ...rules.headers.keys(),
  ])
  const own = replaced.size === 0 ? clientsOwn : clientsOwnBut(replaced)
  const fixed = compileFixedHeaders(rules.headers)
  return (call) => {
    const { headers, body, id, traceparent, authorization } = call
    let text = own(headers)
    if (fixed !== undefined) text = followedBy(text, fixed(call))
    // Without it any coding would do (RFC 9110 §12.5.3). The client's own is here only where the bytes pass verbatim.
    if (headers['accept-encoding'] === undefined) text = followedBy(text, UNCODED)
    text = followedBy(text, call.accept === undefined ? asked(call) : requested(call.accept, call.version))
    text = followedBy(text, headerLine('x-request-id', id))
    text = followedBy(text, headerLine('traceparent', traceparent))
    if (rules.forwardAuthorization && authorization !== undefined)
      text = followedBy(text, headerLine('authorization', authorization))
    if (body.kind === 'bytes' || (body.kind === 'stream' && body.contentType !== undefined))
      text = followedBy(text, headerLine('content-type', body.contentType ?? ''))
    return rules.forwarded === 'off' ? text : followedBy(text, forwarded(call))
  }
}

const UNCODED = headerLine('accept-encoding', 'identity')

function clientsOwn(headers: Call['headers']): HeaderText {
  let text = NO_HEADERS
  for (const name in headers) text = followedBy(text, headerLine(name, headers[name] ?? ''))
  return text
}

/** The client's headers without these names (folded), in any spelling that an upstream may read as the same. */
const clientsOwnBut =
  (replaced: ReadonlySet<string>) =>
  (headers: Call['headers']): HeaderText => {
    let text = NO_HEADERS
    for (const name in headers)
      if (!replaced.has(foldName(name))) text = followedBy(text, headerLine(name, headers[name] ?? ''))
    return text
  }

const requested = (accept: string, version: number): HeaderText =>
  followedBy(headerLine('accept', accept), headerLine('x-postern-action-version', String(version)))

/** The one Accept header that the upstream gets (C8.2), and the version. There are as many of them as actions have versions. */
function compileRequested({ vendor, format, payload, types }: RequestHeaderRules): RequestHeaders {
  const listed = [...(types?.keys() ?? [])]
  const known = { plain: new Map<number, HeaderText>(), versioned: new Map<number, HeaderText>() }
  return ({ action, version }) => {
    const texts = action.versioned ? known.versioned : known.plain
    const found = texts.get(version)
    if (found !== undefined) return found
    const subtype = action.versioned ? `vnd.${vendor}.action.v${version}+${format}` : format
    const own = payload === 'text' ? 'text/plain' : `application/${subtype}`
    const text = requested([...new Set([...listed, own])].join(', '), version)
    texts.set(version, text)
    return text
  }
}

/** Forwarding headers by client address, scheme and host. */
const known = new LRUCache<string, HeaderText>({ max: 1000 })

function forwarded(call: Call): HeaderText {
  const { clientAddress, scheme, host } = call
  const facts = `${clientAddress} ${scheme} ${host}`
  const found = known.get(facts)
  if (found !== undefined) return found
  const lines = forwardedLines(call)
  let text = NO_HEADERS
  for (let at = 0; at < lines.length; at += 2)
    text = followedBy(text, headerLine(lines[at] ?? '', lines[at + 1] ?? ''))
  known.set(facts, text)
  return text
}
