import { Buffer } from 'node:buffer'
import type { Call, UpstreamCallback, UpstreamResponse } from '../../../../base/contracts/calls/backend.ts'
import {
  followedBy,
  headerLine,
  headersOf,
  type HeaderText,
  NO_HEADERS,
} from '../../../../base/http/head/header-text.ts'
import { type HttpUrl, isBelow, resolveReference } from '../../../../base/http/head/reference.ts'
import { after, type Clock } from '../../../../base/kernel/clock.ts'
import { Fault, toFault } from '../../../../base/kernel/faults.ts'
import type { UpstreamReader } from '../../../upstream/reader.ts'
import type { UpstreamRequest } from '../../../upstream/request.ts'
import type { PathTemplate } from '../../templates/places.ts'
import { callsTo, type OfferedOperation, type OperationCall } from './offered-operations.ts'
import type { UpstreamTarget, UpstreamTargets } from './targets.ts'
import { announcedOrigin } from './upstream-addresses.ts'

export interface RedirectRules {
  /** Redirects of one call that are followed, one after the other. */
  readonly max: number
  /** Paths of the service, besides those of the operations, that a call may be sent on to, and what is below them. */
  readonly within: readonly PathTemplate[]
  /** Origins that redirects may lead to, as `URL.origin` writes them. */
  readonly origins: ReadonlySet<string>
}

interface RedirectingUpstream {
  readonly targets: UpstreamTargets
  /** The configured Host header, by which the upstream may know itself. */
  readonly host: string | undefined
  readonly operations: readonly OfferedOperation[]
  /** Whether the upstream is told the public origin, which then stands for its own. */
  readonly announces: boolean
  /** Adds to a query what each call of this operation has there. @throws Fault */
  readonly queryOf: (call: Call, query: string) => string
  /** The time for all steps of a call together, in milliseconds. */
  readonly firstByte: number
  readonly clock: Clock
}

/** Statuses that say "get it there" (RFC 9110 §15.4), and do so for GET and HEAD alike. */
const FOLLOWED: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** The headers of a call that another origin gets. Besides its method, it learns nothing else of the call. */
const FOR_OTHERS = ['accept', 'range', 'traceparent'] as const

/** How a call that was sent to another URL was answered. */
export interface Redirected {
  /** Undefined: it was no redirect that was followed. */
  readonly url: HttpUrl | undefined
  /** Whether another origin answered, or had a part in it. */
  readonly left: boolean
  /** Why the redirect that is the answer was not followed. */
  readonly stopped: string | undefined
}

export interface Redirectable {
  readonly call: Call
  readonly request: UpstreamRequest
  readonly target: UpstreamTarget
  /** Called with the reader that can end the call from now on. */
  readonly reading: (reader: UpstreamReader) => void
  /** Called before the callback if there was a redirect, with what answers. */
  readonly redirected: (how: Redirected) => void
  readonly callback: UpstreamCallback
}

interface Step {
  readonly target: UpstreamTarget
  readonly url: HttpUrl
  readonly left: boolean
  readonly count: number
}

/** Makes the callback for an attempt's first request: it calls the attempt's own once there is an answer that is given. */
export type FollowRedirects = (attempt: Redirectable) => UpstreamCallback

/** Follows an upstream's redirects (C8.8). For calls that are GET or HEAD, here and there. */
export const followRedirects =
  (rules: RedirectRules, upstream: RedirectingUpstream): FollowRedirects =>
  (attempt) => {
    const started = upstream.clock.monotonic()
    return (error, response) => {
      if (response === undefined || !FOLLOWED.has(response.statusCode)) attempt.callback(error, response)
      else new Following(attempt, started, rules, upstream).take(response)
    }
  }

class Following {
  readonly #attempt: Redirectable
  readonly #rules: RedirectRules
  readonly #upstream: RedirectingUpstream
  readonly #stopTimer: () => void
  #step: Step
  #reader: UpstreamReader | undefined

  constructor(attempt: Redirectable, started: number, rules: RedirectRules, upstream: RedirectingUpstream) {
    this.#attempt = attempt
    this.#rules = rules
    this.#upstream = upstream
    const { request, target } = attempt
    this.#step = { target, url: urlOf(target, request.path), left: false, count: 0 }
    const left = Math.max(1, upstream.firstByte - (upstream.clock.monotonic() - started))
    this.#stopTimer = after(left, () => this.#reader?.cancel(tooSlow()))
  }

  take(response: UpstreamResponse): void {
    const next = FOLLOWED.has(response.statusCode) ? this.#next(response) : 'it is no redirect'
    if (typeof next === 'string') {
      this.#end(next)
      this.#attempt.callback(null, response)
      return
    }
    if (!Buffer.isBuffer(response.body)) response.body.cancel()
    this.#step = next
    this.#send(next)
  }

  #end(stopped: string): void {
    const { count, url, left } = this.#step
    this.#stopTimer()
    this.#attempt.redirected({ url: count === 0 ? undefined : url, left, stopped })
  }

  #next({ headers: { location } }: UpstreamResponse): Step | string {
    const { target, url: from, left, count } = this.#step
    if (count >= this.#rules.max) return `${this.#rules.max} redirects are followed`
    if (location === undefined) return 'it names no place'
    const named = resolveReference(location, from)
    if (typeof named === 'string') return named
    const url = this.#asOwn(named, target, left)
    if (from.origin.startsWith('https:') && !url.origin.startsWith('https:'))
      return 'it leads from https to http'
    const own = this.#ownTarget(url.origin, target, left)
    const sent = own === undefined ? 'it leads to another origin' : this.#withinBusiness(url, own)
    if (typeof sent !== 'string') return { target: own ?? target, url: sent, left, count: count + 1 }
    // An origin that the configuration names learns nothing: not whose data is asked for, and no credentials.
    return this.#rules.origins.has(url.origin) ? { target, url, left: true, count: count + 1 } : sent
  }

  /**
   * The URL that a call of the same business and fund would be sent to, with the query that such calls have: the
   * service must not choose it. A text says why the redirect is not followed: with our credentials, one business's
   * service could ask for another's data.
   */
  #withinBusiness(url: HttpUrl, { address: { basePath } }: UpstreamTarget): HttpUrl | string {
    if (!isBelow(url.path, basePath)) return 'it leads out of the target’s path'
    const { call } = this.#attempt
    const path = url.path.slice(basePath.length)
    let missed = 'it leads to no operation of this business'
    try {
      const { operations } = this.#upstream
      const [sent] = [path, withOtherEnd(path)].map((each) => callsTo(each, call, operations)).filter(isAny)
      if (sent?.every((each) => this.#hasHeadersOf(each)) === true)
        return { ...url, query: sent.reduce(queryAsSent, url.query) }
      if (sent !== undefined) missed = 'it leads to an operation whose calls have other headers'
      if (this.#rules.within.some((listed) => isBelow(path, withoutSlash(listed.render(call)))))
        return { ...url, query: this.#upstream.queryOf(call, url.query) }
    } catch (thrown) {
      return toFault(thrown).message
    }
    return `${missed}, and to nothing that \`redirects.within\` lists`
  }

  /** A header of an operation may say whose data is asked for, and the call is sent on with its own headers. */
  #hasHeadersOf({ operation, call }: OperationCall): boolean {
    const own = linesOf(this.#attempt.request.headers)
    return operation.headers === undefined || linesOf(operation.headers(call)).isSubsetOf(own)
  }

  /** A redirect to the public origin is one to the target, which was told that it has that name (C8.2). */
  #asOwn(url: HttpUrl, { address: { origin } }: UpstreamTarget, left: boolean): HttpUrl {
    if (left || !this.#upstream.announces || this.#rules.origins.has(url.origin)) return url
    return url.origin === announcedOrigin(this.#attempt.call) ? { ...url, origin } : url
  }

  /** The target of the same upstream with this origin; undefined once the call has left the upstream. */
  #ownTarget(origin: string, current: UpstreamTarget, left: boolean): UpstreamTarget | undefined {
    if (left) return undefined
    const { targets, host } = this.#upstream
    if (origin === current.address.origin || origin === originByHost(current, host)) return current
    return targets.all.find(({ address }) => address.socketPath === undefined && address.origin === origin)
  }

  #send({ target, url, left }: Step): void {
    const path = url.path + url.query
    const { request } = this.#attempt
    const callback: UpstreamCallback = (error, response) => {
      if (response !== undefined) this.take(response)
      else this.#fail(error)
    }
    this.#reader = left
      ? this.#upstream.targets
          .otherOrigin(url.origin)
          .send(
            { ...request, path, headers: forOthers(request.headers), host: undefined, fresh: false },
            callback,
          )
      : target.sendAbsolute({ ...request, path, fresh: false }, callback)
    this.#attempt.reading(this.#reader)
  }

  #fail(error: Error | null): void {
    this.#stopTimer()
    this.#attempt.callback(error)
  }
}

const linesOf = (headers: HeaderText): ReadonlySet<string> => new Set(headers.split('\r\n'))

const withoutSlash = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : path)
/** Services redirect to what they call the same path: with a slash at its end, or without it. */
const withOtherEnd = (path: string): string => (path.endsWith('/') ? path.slice(0, -1) : `${path}/`)
const isAny = ({ length }: readonly unknown[]): boolean => length > 0

const queryAsSent = (query: string, { operation, call }: OperationCall): string =>
  operation.query === undefined ? query : operation.query(call, query)

const tooSlow = (): Fault =>
  new Fault('upstream_timeout', { detail: 'the upstream’s redirects took longer than one answer may' })

/** @param sent path and query, without the target's base path */
export function urlOf(
  { address: { origin, basePath } }: Pick<UpstreamTarget, 'address'>,
  sent: string,
): HttpUrl {
  const target = basePath + sent
  const mark = target.indexOf('?')
  const end = mark === -1 ? target.length : mark
  return { origin, path: target.slice(0, end), query: target.slice(end) }
}

/** The origin under which a target knows itself, where the configured Host header names another one. */
export const originByHost = (
  { address: { origin } }: Pick<UpstreamTarget, 'address'>,
  host: string | undefined,
): string | undefined =>
  host === undefined ? undefined : URL.parse(`${origin.slice(0, origin.indexOf(':'))}://${host}`)?.origin

function forOthers(headers: HeaderText): HeaderText {
  const given = headersOf(headers)
  let text = NO_HEADERS
  for (const name of FOR_OTHERS) {
    const value = given[name]
    if (value !== undefined) text = followedBy(text, headerLine(name, value))
  }
  return text
}
