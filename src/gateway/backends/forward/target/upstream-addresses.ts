import type { Call } from '../../../../base/contracts/calls/backend.ts'
import {
  type HttpUrl,
  isBelow,
  type LinkParameter,
  type LinkValue,
  parseLink,
  resolveReference,
  writeLink,
} from '../../../../base/http/head/reference.ts'
import type { UpstreamAddress } from '../../../upstream/socket.ts'
import { type OfferedOperation, publicPathOf } from './offered-operations.ts'
import type { ResponseHeaders } from '../response/response.ts'

export interface LinkRules {
  readonly responseHeaders: readonly string[]
  readonly targets: readonly UpstreamAddress[]
  /** The origins by which the upstream may know itself, besides its targets'. */
  readonly origins: ReadonlySet<string>
  readonly operations: readonly OfferedOperation[]
  /** Whether the upstream is told the public origin, so that it may write URLs with it. */
  readonly announces: boolean
  /** Takes those parts out of a query that clients do not send themselves. */
  readonly filterQuery: (query: string) => string
  readonly holdsAddress: HoldsAddress
}

type Rewrite = (value: string, toPublic: ToPublic, holdsAddress: HoldsAddress) => string | undefined
type ToPublic = (reference: string) => string | undefined

const rewriteOne: Rewrite = (value, toPublic) => toPublic(value)

/** Headers that hold URLs (RFC 9110 §8.7 and §10.2.2, RFC 8288). */
const REWRITTEN: ReadonlyMap<string, Rewrite> = new Map([
  ['location', rewriteOne],
  ['content-location', rewriteOne],
  ['link', rewriteLink],
])

/** The origin that forwarding headers tell (C8.2). */
export const announcedOrigin = ({ scheme, host }: Pick<Call, 'scheme' | 'host'>): string | undefined =>
  URL.parse(`${scheme}://${host}`)?.origin

/** A query may hold a URL. */
const unescaped = (query: string): string =>
  query.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/**
 * How many links of a header are rewritten. Each is compared with the paths of all operations of its level, on the serving
 * thread.
 */
const MOST_LINKS = 20

/** Each link is treated by itself: a link that does not map back is left out. */
function rewriteLink(header: string, toPublic: ToPublic, holdsAddress: HoldsAddress): string | undefined {
  const links = (parseLink(header) ?? []).slice(0, MOST_LINKS)
  const kept = links.flatMap((link) => rewritten(link, toPublic, holdsAddress))
  return kept.length === 0 ? undefined : writeLink(kept)
}

function rewritten(
  { target, parameters }: LinkValue,
  toPublic: ToPublic,
  holdsAddress: HoldsAddress,
): readonly LinkValue[] {
  const url = toPublic(target)
  if (url === undefined) return []
  const kept: LinkParameter[] = []
  for (const { name, value = '' } of parameters) {
    const own = name === 'anchor' ? toPublic(value) : value
    if (own === undefined || (name !== 'anchor' && holdsAddress(value))) return []
    kept.push({ name, value: own })
  }
  return [{ target: url, parameters: kept }]
}

/** Keeps addresses of the upstream out of the headers that pass by configuration (C8.8). */
export class LinkHeaders {
  readonly #rules: LinkRules
  readonly #listed: readonly string[]

  constructor(rules: LinkRules) {
    this.#rules = rules
    this.#listed = [...new Set(rules.responseHeaders.map((name) => name.toLowerCase()))]
  }

  /** Rewrites or removes, in place. @param from the URL that was answered */
  apply(headers: ResponseHeaders, call: Call, from: () => HttpUrl): ResponseHeaders {
    for (const name of this.#listed) {
      const value = headers[name]
      if (value === undefined) continue
      const rewrite = REWRITTEN.get(name)
      const kept =
        rewrite === undefined ? this.#withoutAddress(value) : this.#rewrite(rewrite, value, call, from())
      if (kept === undefined) Reflect.deleteProperty(headers, name)
      else headers[name] = kept
    }
    return headers
  }

  #withoutAddress(value: string | readonly string[]): string | readonly string[] | undefined {
    const kept = [value].flat().filter((each) => !this.#rules.holdsAddress(each))
    if (kept.length === 0) return undefined
    return typeof value === 'string' ? value : kept
  }

  #rewrite(
    rewrite: Rewrite,
    value: string | readonly string[],
    call: Call,
    from: HttpUrl,
  ): string | undefined {
    if (typeof value !== 'string') return undefined
    return rewrite(value, (reference) => this.#toPublic(reference, call, from), this.#rules.holdsAddress)
  }

  #toPublic(reference: string, call: Call, from: HttpUrl): string | undefined {
    const url = resolveReference(reference, from)
    if (typeof url === 'string') return undefined
    const { targets, origins, operations, announces, filterQuery, holdsAddress } = this.#rules
    const isAnnounced = announces && url.origin === announcedOrigin(call)
    const found = new Set<string>()
    for (const { origin, basePath } of targets) {
      const isOwn = url.origin === origin || origins.has(url.origin) || isAnnounced
      if (!isOwn || !isBelow(url.path, basePath)) continue
      const path = publicPathOf(url.path.slice(basePath.length), call, operations)
      if (path !== undefined) found.add(path)
    }
    const [path] = found
    if (path === undefined || found.size > 1) return undefined
    try {
      const query = filterQuery(url.query)
      return holdsAddress(unescaped(query)) ? undefined : call.baseUrl + path + query
    } catch {
      return undefined
    }
  }
}

/** A host name of one word may be a word of any message: then only its place shows that it is an address. */
const isWord = (host: string): boolean => /^[a-z0-9-]+$/i.test(host)

function patternsOf({ origin, socketPath }: UpstreamAddress): readonly string[] {
  return socketPath === undefined ? patternsOfOrigin(origin) : [RegExp.escape(socketPath)]
}

function patternsOfOrigin(origin: string): readonly string[] {
  const { hostname, port } = new URL(origin)
  return patternsOfHost(hostname, port)
}

/** As written, or percent-encoded: a message may quote a query in which the address was a value. */
const SLASHES = '(?://|%2F%2F)'
const COLON = '(?::|%3A)'
/** The last letter of `%2F` is no part of the name behind it. */
const START = '(?:(?<![\\w-])|(?<=%[0-9A-F]{2}))'

function patternsOfHost(host: string, port: string): readonly string[] {
  const name = RegExp.escape(host.replace(/^\[|\]$/g, ''))
  if (!isWord(host)) return [`${START}${name}(?![\\w-])`]
  return [
    `${SLASHES}(?:[^/@\\s]*@)?${name}(?![\\w-])`,
    `(?<![\\w.-])${name}${COLON}${port === '' ? '\\d' : port}`,
  ]
}

export type HoldsAddress = (text: string) => boolean

/**
 * Makes the test whether a text holds an address of an upstream: a host name or IP address with a dot or colon in it, a
 * one-word name in a URL or before a port, the path of a socket; in any case of letters.
 * @param host the configured Host header
 * @param origins those that redirects may lead to
 */
export function compileHoldsAddress(
  targets: readonly UpstreamAddress[],
  host: string | undefined,
  origins: Iterable<string> = [],
): HoldsAddress {
  let expression: RegExp | undefined
  return (text) => (expression ??= addressExpression(targets, host, origins)).test(text)
}

function addressExpression(
  targets: readonly UpstreamAddress[],
  host: string | undefined,
  origins: Iterable<string>,
): RegExp {
  const own = host === undefined ? [] : patternsOfHost(host.replace(/:\d+$/, ''), '')
  const patterns = new Set([
    ...targets.flatMap(patternsOf),
    ...own,
    ...[...origins].flatMap(patternsOfOrigin),
  ])
  return new RegExp([...patterns].join('|'), 'i')
}
