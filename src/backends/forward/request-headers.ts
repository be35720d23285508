import type { Call } from '../../contracts/backend.ts'
import { forwardedLines } from '../../http/forwarded.ts'
import { followedBy, headerLine, NO_HEADERS, type HeaderText } from '../../http/header-text.ts'

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

/** Clients whose forwarding headers are remembered; then they are made anew. */
const MOST_CLIENTS = 1000
const known = new Map<string, HeaderText>()

function forwarded(call: Call): HeaderText {
  const { clientAddress, scheme, host } = call
  const facts = `${clientAddress} ${scheme} ${host}`
  const found = known.get(facts)
  if (found !== undefined) return found
  const lines = forwardedLines(call)
  let text = NO_HEADERS
  for (let at = 0; at < lines.length; at += 2)
    text = followedBy(text, headerLine(lines[at] ?? '', lines[at + 1] ?? ''))
  if (known.size >= MOST_CLIENTS) known.clear()
  known.set(facts, text)
  return text
}
