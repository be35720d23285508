import { LRUCache } from 'lru-cache'
import type { Call } from '../../contracts/backend.ts'
import { forwardedLines } from '../../http/forwarded.ts'
import { followedBy, headerLine, NO_HEADERS, type HeaderText } from '../../http/header-text.ts'

/** What a template may name: each stands for segments of the judged target, and for nothing else (T1.6). */
const PIECES: Readonly<
  Record<string, (segments: readonly string[], fundLevel: boolean) => readonly string[]>
> = {
  version: (segments) => segments.slice(1, 2),
  business: (segments) => segments.slice(3, 4),
  fund: (segments, fundLevel) => (fundLevel ? segments.slice(4, 5) : []),
  area: (segments, fundLevel) => segments.slice(fundLevel ? 5 : 4, fundLevel ? 6 : 5),
  action: (segments, fundLevel) => segments.slice(fundLevel ? 6 : 5),
}

/** Unreserved characters and few others: nothing that any upstream reads as something else. */
const LITERAL = /^[A-Za-z0-9._~!$&'()*+,=:@-]+$/
const PIECE = /^\{([a-z]+)\}$/

type Part = (segments: readonly string[], fundLevel: boolean) => readonly string[]

/** The path that a call is sent to, made of its judged target. */
export type PathTemplate = (call: Pick<Call, 'target' | 'action'>) => string

/**
 * Compiles `/v2/{business}/{area}/{action}`. Each segment is literal or one piece: `version`, `business`, `fund` (left
 * out at business level), `area`, `action` (all of its segments, parameters as the client gave them). Answers what is
 * wrong with it, if anything is.
 */
export function compilePathTemplate(template: string): PathTemplate | string {
  if (!template.startsWith('/') || template === '/') return 'must begin with "/" and a segment'
  const parts: Part[] = []
  for (const segment of template.slice(1).split('/')) {
    const part = partOf(segment)
    if (typeof part === 'string') return part
    parts.push(part)
  }
  return ({ target, action }) => {
    const fundLevel = action.level === 'fund'
    return `/${parts.flatMap((part) => part(target.segments, fundLevel)).join('/')}`
  }
}

function partOf(segment: string): Part | string {
  const [, name] = PIECE.exec(segment) ?? []
  if (name !== undefined) {
    const piece = Object.hasOwn(PIECES, name) ? PIECES[name] : undefined
    return piece ?? `has no piece {${name}}; expected one of {${Object.keys(PIECES).join('}, {')}}`
  }
  if (!LITERAL.test(segment) || segment === '.' || segment === '..')
    return 'must be made of segments that are plain text or one {piece} each'
  const literal = [segment]
  return () => literal
}

/** What of the `http` backend's configuration the request's headers depend on. */
export interface RequestHeaderRules {
  readonly vendor: string
  readonly format: 'json' | 'xml'
  readonly forwardAuthorization: boolean
}

/** Writes the headers of the upstream request (C8.2), but for who calls (upstream-identity.ts) and what frames it. */
export type RequestHeaders = (call: Call) => HeaderText

/** Nothing of the client's is among Postern's own names: those were taken out of it (http/end-to-end-headers.ts). */
export function compileRequestHeaders(rules: RequestHeaderRules): RequestHeaders {
  const asked = compileAsked(rules)
  return (call) => {
    const { headers, body, id, traceparent, authorization } = call
    let text = clientsOwn(headers)
    // Without it any coding would do (RFC 9110 §12.5.3). The client's own is here only where the bytes pass verbatim.
    if (headers['accept-encoding'] === undefined) text = followedBy(text, UNCODED)
    text = followedBy(text, call.accept === undefined ? asked(call) : askedFor(call.accept, call.version))
    text = followedBy(text, headerLine('x-request-id', id))
    text = followedBy(text, headerLine('traceparent', traceparent))
    if (rules.forwardAuthorization && authorization !== undefined)
      text = followedBy(text, headerLine('authorization', authorization))
    if (body.kind === 'bytes' || (body.kind === 'stream' && body.contentType !== undefined))
      text = followedBy(text, headerLine('content-type', body.contentType ?? ''))
    return followedBy(text, forwarded(call))
  }
}

const UNCODED = headerLine('accept-encoding', 'identity')

function clientsOwn(headers: Call['headers']): HeaderText {
  let text = NO_HEADERS
  for (const name in headers) text = followedBy(text, headerLine(name, headers[name] ?? ''))
  return text
}

const askedFor = (accept: string, version: number): HeaderText =>
  followedBy(headerLine('accept', accept), headerLine('x-postern-action-version', String(version)))

/** The upstream's exactly one Accept (C8.2), and the version. There are as many of them as actions have versions. */
function compileAsked({ vendor, format }: RequestHeaderRules): RequestHeaders {
  const plain = `application/${format}`
  const known = { plain: new Map<number, HeaderText>(), versioned: new Map<number, HeaderText>() }
  return ({ action, version }) => {
    const texts = action.versioned ? known.versioned : known.plain
    const found = texts.get(version)
    if (found !== undefined) return found
    const accept = action.versioned ? `application/vnd.${vendor}.action.v${version}+${format}` : plain
    const text = askedFor(accept, version)
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
