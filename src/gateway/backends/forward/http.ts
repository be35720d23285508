import type { IncomingHttpHeaders } from 'node:http'
import type {
  BodyMaking,
  ActionFacts,
  Backend,
  BackendAnswer,
  Call,
  KeptOut,
  Payload,
  PossibleAnswers,
  Previewing,
  SentRequest,
  UpstreamTraffic,
  UpstreamResponse,
} from '../../../base/contracts/calls/backend.ts'
import { isBodiless } from '../../../base/http/head/head.ts'
import { followedBy, type HeaderText } from '../../../base/http/head/header-text.ts'
import type { JsonPointer } from '../../../base/http/body/json.ts'
import { compileQueryFilter } from '../../../base/http/head/query.ts'
import type { PlainXmlRules } from '../../../base/http/xml/plain-document.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { type FaultCode, toFault } from '../../../base/kernel/faults.ts'
import type { UpstreamTimeouts } from '../../upstream/request.ts'
import { compileQueryTemplate, placeholdersOf, type QueryTemplate } from '../templates/places.ts'
import { credentialsFor, type Authorized } from './auth/credentials.ts'
import { maskedRules, maskedTargets, sentRequest, tryCredentials } from './preview.ts'
import { CallForwarding, type ForwardingBackend, type ResponseSource } from './forwarding.ts'
import { searchedPlaces } from './response/own-errors.ts'
import { followRedirects, type FollowRedirects, originByHost } from './target/redirects.ts'
import { Refusals, type UpstreamRefusal } from './refusal.ts'
import { compileRequestHeaders, type RequestHeaders } from './request.ts'
import {
  answersByStatus,
  checkStatus,
  cleanResponseHeaders,
  passedNames,
  type ResponseHeaders,
  type StatusVerdict,
  successBody,
  unsent,
} from './response/response.ts'
import type { ExchangeRules, HttpBackendRules } from './rules.ts'
import { SuccessReader } from './success.ts'
import { checkHealth, UpstreamTarget, UpstreamTargets } from './target/targets.ts'
import { compileHoldsAddress, LinkHeaders, type LinkRules } from './target/upstream-addresses.ts'
import { type CallTargets, VaryingTargets } from './target/varying-targets.ts'

/** How many views for call targets an operation keeps; to make one costs some microseconds. */
const MOST_VIEWS = 200

/** Forwards calls to an HTTP upstream (C8.1 to C8.4). */
export class HttpBackend implements Backend, ForwardingBackend {
  readonly name: string
  readonly format: 'json' | 'xml'
  readonly payload: Payload
  readonly types: HttpBackendRules['types']
  readonly isSearched: boolean
  readonly ranges: 'bytes' | 'verbatim'
  readonly xml: PlainXmlRules | undefined
  readonly data: JsonPointer | undefined
  readonly namesValues: boolean
  readonly rules: HttpBackendRules
  readonly #clock: Clock
  readonly targets: UpstreamTargets
  readonly #passed: ReadonlySet<string>
  readonly #requestHeaders: RequestHeaders
  readonly #allowed: ReadonlySet<string> | undefined
  readonly #query: QueryTemplate | undefined
  /** For queries that a module sends: it may use names that a client may not. */
  readonly #ownQuery: QueryTemplate | undefined
  /** The timeouts of its calls, where they differ from those of the connections. */
  readonly timeouts: UpstreamTimeouts | undefined
  readonly #refusals: Refusals
  /** Undefined: all successes are alike. */
  readonly #successes: SuccessReader | undefined
  /** Undefined: no headers pass beyond the defaults. */
  readonly #links: LinkHeaders | undefined
  readonly redirects: FollowRedirects | undefined
  readonly #stopChecks: readonly (() => void)[]
  /** Undefined: all calls go to `targets`. */
  readonly #varying: VaryingTargets | undefined
  readonly #views = new Map<CallTargets, this>()

  /**
   * @param owner the backend that this is a view of: it checks the health of the targets, and closes them
   * @param at where the calls of the view go, if the calls of its owner do not all go to the same place
   */
  constructor(rules: HttpBackendRules, clock: Clock, owner?: HttpBackend, at?: CallTargets) {
    this.name = rules.name
    this.format = rules.format
    this.payload = rules.payload
    this.types = rules.types
    this.ranges = rules.ranges
    this.isSearched = searchedPlaces(rules.errors) !== undefined
    this.data = rules.payload === 'bare' ? rules.data : undefined
    this.namesValues = rules.namesValues === true
    this.xml = rules.format === 'xml' ? rules.xml?.rules : undefined
    this.rules = rules
    this.#clock = clock
    this.#varying = at === undefined ? this.#varyingTargets(owner) : undefined
    this.targets = at?.targets ?? owner?.targets ?? new UpstreamTargets(this.#openTargets(), rules)
    this.#passed = passedNames(rules.responseHeaders)
    const same = at === undefined ? undefined : owner
    this.#requestHeaders = same === undefined ? compileRequestHeaders(rules) : same.#requestHeaders
    this.#allowed = allowedHeaders(rules)
    this.#query = same === undefined ? compileQueryTemplate(rules) : same.#query
    this.#ownQuery = same === undefined ? this.#queryOfOwn() : same.#ownQuery
    this.timeouts = owner === undefined ? undefined : rules.timeouts
    this.#refusals = new Refusals(rules, clock)
    this.#successes = SuccessReader.of(rules, this.#refusals)
    this.#links = rules.responseHeaders.length === 0 ? undefined : new LinkHeaders(linkRules(rules))
    this.redirects = this.#compileRedirects()
    const { healthCheck, host } = rules
    this.#stopChecks =
      healthCheck && owner === undefined
        ? this.targets.all.map((target) => checkHealth(target, healthCheck, { host }))
        : []
  }

  #queryOfOwn(): QueryTemplate | undefined {
    return this.rules.keptOut === undefined
      ? this.#query
      : compileQueryTemplate({ ...this.rules, keptOut: undefined })
  }

  #varyingTargets(owner: HttpBackend | undefined): VaryingTargets | undefined {
    if (owner !== undefined) return owner.#varying
    const { varying } = this.rules
    return varying && new VaryingTargets(varying, this.rules, this.#clock)
  }

  #openTargets(): readonly UpstreamTarget[] {
    const { targets, targetChanged } = this.rules
    if (this.#varying !== undefined) return []
    return targets.map((address) => new UpstreamTarget(address, this.rules, this.#clock, targetChanged))
  }

  #compileRedirects(): FollowRedirects | undefined {
    const { redirects, host, timeouts, query, keptOut, operations = [] } = this.rules
    if (redirects === undefined || redirects.max === 0) return undefined
    // `queryOnly` and `strictQuery` are for what clients send.
    const queryOf = compileQueryTemplate({ query, queryOnly: undefined, strictQuery: false, keptOut })
    return followRedirects(redirects, {
      targets: this.targets,
      host,
      operations,
      announces: this.rules.forwarded === 'on',
      queryOf: (call, given) => queryOf?.(call, given) ?? given,
      firstByte: timeouts.firstByte,
      clock: this.#clock,
    })
  }

  /** The same upstream, over the same connections, with other rules for one operation. */
  withRules(rules: Partial<ExchangeRules>): HttpBackend {
    return new HttpBackend({ ...this.rules, ...rules }, this.#clock, this)
  }

  /**
   * The backend that sends a call: this one, or a view of it if target or host differ from call to call.
   * @throws Fault `business_value_missing`, `unsendable_value`, `unsendable_argument`, `upstream_unreachable`
   */
  at(call: Call): this {
    if (this.#varying === undefined) return this
    const targets = this.#varying.of(call)
    const known = this.#views.get(targets)
    if (known !== undefined) return known
    const { addresses, host, tls, conceals } = targets
    const view = this.viewAt({ ...this.rules, targets: addresses, host, tls, conceals }, targets) as this
    if (this.#views.size >= MOST_VIEWS) this.#views.clear()
    this.#views.set(targets, view)
    return view
  }

  protected viewAt(rules: HttpBackendRules, targets: CallTargets): HttpBackend {
    return new HttpBackend(rules, this.#clock, this, targets)
  }

  get retries(): number {
    return this.rules.retries
  }

  get bodyUse(): BodyMaking | undefined {
    return this.rules.bodyUse
  }

  get requestHeaders(): ReadonlySet<string> | undefined {
    return this.#allowed
  }

  get keptOut(): KeptOut | undefined {
    return this.rules.keptOut
  }

  get host(): string | undefined {
    return this.rules.host
  }

  get conceals(): boolean {
    return this.rules.conceals === true
  }

  answer(call: Call): Promise<BackendAnswer> {
    const own = this.at(call)
    return own.send(call, own)
  }

  /** @param as makes the result of the upstream's response: this backend, or what a module has changed of it */
  send<T>(call: Call, as: ForwardingBackend<T>): Promise<T> {
    const headers = this.headersOf(call)
    const authorized = this.authorize(call)
    return headers instanceof Promise || authorized instanceof Promise
      ? Promise.all([headers, authorized]).then(
          (both) => carry(call, ...both, as),
          (thrown: unknown) => Promise.reject(unsent(toFault(thrown))),
        )
      : carry(call, headers, authorized, as)
  }

  /** Without the base path of the target that it will go to. */
  pathOf(call: Call): string {
    return this.pathWithoutQuery(call) + this.queryOf(call, call.target.query)
  }

  pathWithoutQuery(call: Call): string {
    const { path } = this.rules
    return path === undefined ? call.target.path : path.render(call)
  }

  /** The query that is sent. @param query the client's: empty, or with its `?` */
  queryOf(call: Call, query: string): string {
    return this.#query === undefined ? query : this.#query(call, query)
  }

  /** The same for a query that the user's own code gave. */
  queryOfOwn(call: Call, query: string): string {
    return this.#ownQuery === undefined ? query : this.#ownQuery(call, query)
  }

  /** The method that is sent. A HEAD asks for what a GET would, and so is sent as HEAD or as the method that replaces GET. */
  methodOf({ method }: Call): string {
    const own = this.rules.method
    return own === undefined || (method === 'HEAD' && own === 'GET') ? method : own
  }

  /** Postern's credentials; a promise only where a token has to be fetched first. */
  authorize(call: Call): Authorized | undefined | Promise<Authorized> {
    const { credentials } = this.rules
    return credentials === undefined ? undefined : credentialsFor(call, credentials)
  }

  /** The headers of C8.2, but for our credentials; a promise only where a token has to be signed first. */
  headersOf(call: Call): HeaderText | Promise<HeaderText> {
    const headers = this.#requestHeaders(call)
    const caller = this.rules.identify(call)
    return caller instanceof Promise
      ? caller.then((signed) => followedBy(headers, signed))
      : followedBy(headers, caller)
  }

  masked(call: Call): Backend & Previewing {
    this.#requestHeaders(call)
    this.pathOf(call)
    tryCredentials(this.rules.credentials, call)
    const rules = maskedRules(this.rules, call.values.secrets)
    const { varying } = this.rules
    return this.#varying === undefined || varying === undefined
      ? this.withRules(rules)
      : this.withRules({ ...rules, ...maskedTargets(varying, this.#varying.whereTo(call), call) })
  }

  async preview(call: Call): Promise<SentRequest> {
    const authorized = await this.authorize(call)
    const headers = await this.headersOf(call)
    const sent = new CallForwarding(call, headers, authorized, this, UNSENT)
    return sentRequest(sent, this.rules.targets)
  }

  answerOf(
    call: Call,
    response: UpstreamResponse,
    source: ResponseSource,
  ): BackendAnswer | Promise<BackendAnswer> {
    const { redirected } = source
    const reads = isBodiless(call.method)
    const verdict = checkStatus(response.statusCode, {
      conditional: reads && ('if-none-match' in call.headers || 'if-modified-since' in call.headers),
      ranged: (reads || this.ranges === 'verbatim') && 'range' in call.headers,
      authorizationForwarded:
        this.rules.forwardAuthorization && call.authorization !== undefined && redirected?.left !== true,
    })
    if (verdict.kind === 'answer') return this.#pass(call, response, source)
    return this.refuse(verdict, response, redirected?.stopped)
  }

  /** Throws the verdict's fault, unless own errors pass (C8.4). @param stopped why a redirect was not followed */
  refuse(
    verdict: StatusVerdict,
    refusal: UpstreamRefusal,
    stopped?: string,
  ): BackendAnswer | Promise<BackendAnswer> {
    return this.#refusals.answer(verdict, refusal, stopped)
  }

  /** The headers of an upstream that reach the client (C8.3, C8.8). */
  passedHeaders(
    call: Call,
    headers: IncomingHttpHeaders,
    source: Pick<ResponseSource, 'url'>,
  ): ResponseHeaders {
    const passed = cleanResponseHeaders(headers, this.#passed)
    return this.#links === undefined ? passed : this.#links.apply(passed, call, () => source.url)
  }

  #pass(call: Call, response: UpstreamResponse, source: ResponseSource): BackendAnswer {
    const headers = this.passedHeaders(call, response.headers, source)
    return this.#successes === undefined || call.action.produces !== undefined
      ? { status: response.statusCode, headers, body: successBody(call, response, this.format) }
      : this.#successes.answer(call, response, headers)
  }

  possibleAnswers(_action: ActionFacts, method: string): PossibleAnswers {
    const { credentials, forwardAuthorization } = this.rules
    const faults: FaultCode[] = ['upstream_unreachable', 'upstream_timeout']
    if (credentials?.renewable === true) faults.push('upstream_token_unavailable')
    if (forwardAuthorization) faults.push('upstream_unauthorised')
    const { query, strictQuery, keptOut } = this.rules
    const isMade = placeholdersOf(this.rules).length > 0
    if (this.namesValues) faults.push('business_value_missing')
    if (isMade) faults.push('unsendable_value')
    if (isMade || strictQuery || query.size > 0 || keptOut !== undefined) faults.push('unsendable_argument')
    return answersByStatus({ method, requestHeaders: this.#allowed, faults })
  }

  healthy(): boolean {
    return (this.#varying ?? this.targets).isHealthy
  }

  traffic(): UpstreamTraffic {
    return (this.#varying ?? this.targets).traffic
  }

  async close(): Promise<void> {
    for (const stop of this.#stopChecks) stop()
    await Promise.all([this.targets.close(), this.#varying?.close(), this.rules.sources.close()])
  }
}

const UNSENT = { resolve: () => undefined, reject: () => undefined }

/** `ranges: verbatim` lets them pass whatever the list says. */
const OF_PARTS = ['range', 'range-unit', 'if-range']

const allowedHeaders = ({ requestHeaders, ranges }: HttpBackendRules): ReadonlySet<string> | undefined =>
  requestHeaders === undefined || ranges === 'bytes'
    ? requestHeaders
    : new Set([...requestHeaders, ...OF_PARTS])

const carry = <T>(
  call: Call,
  headers: HeaderText,
  authorized: Authorized | undefined,
  as: ForwardingBackend<T>,
): Promise<T> =>
  new Promise((resolve, reject) => {
    call.carrier.carry(new CallForwarding(call, headers, authorized, as, { resolve, reject }))
  })

function linkRules(rules: HttpBackendRules): LinkRules {
  const { targets, host, operations = [], responseHeaders, redirects } = rules
  const others = targets.map((address) => originByHost({ address }, host))
  return {
    responseHeaders,
    targets,
    operations,
    announces: rules.forwarded === 'on',
    origins: new Set(others.filter((origin) => origin !== undefined)),
    filterQuery:
      compileQueryFilter({
        taken: [...rules.query.keys()],
        only: undefined,
        strict: false,
        kept: rules.keptOut?.query,
      }) ?? ((query) => query),
    holdsAddress: compileHoldsAddress(targets, host, redirects?.origins),
  }
}
