import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { KeyPath, Report } from '../../config/report.ts'
import type { Backend } from '../../contracts/backend.ts'
import type { Signer } from '../../contracts/keys.ts'
import type { Clock } from '../../kernel/clock.ts'
import { compileAuthorization } from './auth/compile.ts'
import { TokenSources } from './auth/token-sources.ts'
import type { ForwardingConfig, OperationUpstream } from './schema.ts'
import type { ExchangeRules, HttpBackend, HttpBackendRules } from './http.ts'
import { type CallShape, checkTemplates } from './check-templates.ts'
import {
  callersWithoutIssuer,
  compileRequest,
  mergeNamed,
  notReplaced,
  reportTakenNames,
  type RequestChanges,
  type RequestRules,
  templatesOf,
  tellBusiness,
} from './compile-request.ts'
import { type Identify, identifyByHeaders, identifyByToken, identifyNobody } from './request.ts'
import { foldName } from '../../http/end-to-end-headers.ts'
import { isForbiddenResponseHeader } from './response.ts'
import type { OfferedOperation } from './offered-operations.ts'
import { checkDataInXml, checkDataKey, compileAnswers } from './compile-answers.ts'
import { parseUpstreamAddress, type UpstreamAddress, type UpstreamTls } from '../../upstream/socket.ts'
import type { TargetChange } from './targets.ts'
import { compileOperationXml, compileXml } from './compile-xml.ts'
import type { XmlSection } from './xml-schema.ts'

/** What forwarding backends need of the rest of the deployment. */
export interface ForwardingDependencies {
  readonly vendor: string
  readonly clock: Clock
  /** Absent where Postern has no keys of its own (C11.2). */
  readonly signer: Signer | undefined
  /** Told of targets that are put out or taken back. */
  readonly targetChanged: (backend: string, target: string, change: TargetChange) => void
  /** Told why a backend gets no access tokens for its upstream; undefined once it gets them again. */
  readonly tokenChanged: (backend: string, failure: string | undefined) => void
}

/** Compiles what forwarding backends have in common; undefined if a problem was reported that leaves nothing to open. */
export async function compileForwarding(
  name: string,
  config: ForwardingConfig,
  report: Report,
  dependencies: ForwardingDependencies,
): Promise<HttpBackendRules | undefined> {
  const at = ['backends', name]
  const targets = compileTargets(config, at, report)
  const sources = new TokenSources(dependencies.clock, (failure) => dependencies.tokenChanged(name, failure))
  const exchange = compileExchange(config, { sources, targets: targets ?? [] }, at, report)
  reportTakenNames({ query: new Map(), queryOnly: undefined, ...exchange }, at, report)
  reportTwoOfOneHeader({ headers: new Map(), credentials: undefined, ...exchange }, at, report)
  const identify = compileIdentity(name, config, at, report, dependencies)
  const tls = await compileTls(config, at, report)
  const { format, payload, forwardAuthorization, responseHeaders, retries, timeouts } = config
  const xml =
    config.xml && compileXml(config.xml, { format, payload, inherited: undefined }, [...at, 'xml'], report)
  checkDataInXml({ data: exchange.data, xml }, at, report)
  if (targets === undefined) return undefined
  return {
    name,
    vendor: dependencies.vendor,
    ...{ format, payload, forwardAuthorization, responseHeaders, retries },
    ...{ path: undefined, query: new Map(), queryOnly: undefined, headers: new Map() },
    ...{ requestHeaders: undefined, method: undefined, credentials: undefined },
    ...{ errors: undefined, errorStatus: undefined, redirects: undefined, data: undefined },
    ...{ operations: undefined },
    ...exchange,
    xml,
    ...{ targets, identify, tls, sources },
    host: config.host,
    maxConnections: config.maxConnections,
    timeouts,
    connectionAge: config.connectionAge,
    closeDelimited: config.closeDelimited,
    ejection: config.ejection,
    healthCheck: config.healthCheck,
    targetChanged: (target, change) => dependencies.targetChanged(name, target, change),
  }
}

/** The keys that a backend and an operation may have. */
type ExchangeConfig = Omit<OperationUpstream, 'backend'>

/** What an operation says. What it does not say is the backend's. */
type ExchangeChanges = Partial<Omit<ExchangeRules, 'timeouts'>> & RequestChanges

/**
 * Compiles the keys that an operation may say differently from its backend (C8.7): those that are given.
 * @param at the section that holds them
 */
export function compileExchange(
  config: ExchangeConfig,
  { sources, targets }: { readonly sources: TokenSources; readonly targets: readonly UpstreamAddress[] },
  at: KeyPath,
  report: Report,
): ExchangeChanges {
  const { responseHeaders, format, payload } = config
  checkResponseHeaders(responseHeaders ?? [], at, report)
  return {
    ...compileRequest(config, at, report),
    ...(responseHeaders && { responseHeaders }),
    ...compileAuthorization(config, at, report, sources),
    ...(format && { format }),
    ...(payload && { payload }),
    ...compileAnswers(config, targets, at, report),
  }
}

/** What an operation over a backend that forwards is answered by. */
export interface ForwardedOperation {
  /** Absent: it says nothing different. */
  readonly upstream: OperationUpstream | undefined
  /** The calls that it may get. */
  readonly calls: CallShape
  /** The client's method; GET includes HEAD. */
  readonly method: string
  /** Whether its answers are of types of their own, without an envelope (C7.1). */
  readonly producesOwn: boolean
  /** It is added to `all`: the operations of this configuration that the same backend answers. */
  readonly offered: {
    readonly operation: Omit<OfferedOperation, 'path'>
    readonly all: OfferedOperation[]
  }
  /** Where the operation stands in the configuration. */
  readonly at: KeyPath
}

/** A backend of which an operation may have a view of its own, over the same connections. */
export interface Shapeable extends Backend {
  /** What its configuration says of XML (C7.7). */
  readonly xmlSection: XmlSection | undefined
  readonly rules: ExchangeRules
  /** What sends. */
  readonly sender: HttpBackend
  withRules(rules: Partial<ExchangeRules>): Shapeable
}

/** The backend that answers an operation: `backend` itself, unless the operation says something different (C8.7). */
export function compileOperationBackend(
  backend: Shapeable,
  { upstream, calls, producesOwn, offered, at }: ForwardedOperation,
  report: Report,
): Shapeable {
  const places = { own: [...at, 'upstream'], shared: ['backends', backend.name] }
  const own = upstream === undefined ? {} : compileOwn(backend, upstream, places.own, report)
  checkDataKey(upstream ?? {}, backend, producesOwn, places.own, report)
  const rules = { ...backend.rules, ...own, ...mergeNamed(backend.rules, own) }
  if (own.data ?? own.xml) checkDataInXml(rules, places.own, report)
  checkTemplates(
    [
      ...templatesOf(own, places.own, false),
      ...templatesOf(notReplaced(backend.rules, own), places.shared, true),
    ],
    calls,
    report,
  )
  if (own.query ?? own.queryOnly) reportTakenNames(rules, places.own, report)
  if (own.headers ?? own.credentials) reportTwoOfOneHeader(rules, places.own, report)
  if (!rules.forwardAuthorization && !backend.sender.tellsCaller && !tellBusiness(rules))
    report.warn(
      at,
      'tells the service nowhere which business is meant: neither path, query, headers nor identity do',
      'add {business} to one of them',
    )
  if (calls.severalIssuers) warnOfSameIds(rules, at, report)
  offered.all.push({ ...offered.operation, path: rules.path })
  if (rules.responseHeaders.length > 0) return backend.withRules({ ...rules, operations: offered.all })
  return Object.keys(own).length === 0 ? backend : backend.withRules(rules)
}

function warnOfSameIds(rules: RequestRules, at: KeyPath, report: Report): void {
  const [name] = callersWithoutIssuer(rules)
  if (name !== undefined)
    report.warn(
      at,
      `sends {${name}} without saying which issuer's it is: another issuer may give the same id to somebody else`,
      'add {issuer}, the name of the issuer, to path, query or headers',
    )
}

function compileOwn(
  { format, payload, xmlSection: inherited, sender }: Shapeable,
  upstream: OperationUpstream,
  at: KeyPath,
  report: Report,
): ExchangeChanges {
  const xml = compileOperationXml(upstream, { format, payload, inherited }, at, report)
  const shared = { sources: sender.sources, targets: sender.targets.all.map(({ address }) => address) }
  return { ...compileExchange(upstream, shared, at, report), ...(xml && { xml }) }
}

function reportTwoOfOneHeader(
  { headers, credentials }: Pick<ExchangeRules, 'headers' | 'credentials'>,
  at: KeyPath,
  report: Report,
): void {
  if (credentials !== undefined && headers.has(foldName(credentials.name)))
    report.error(at, `sets the header ${credentials.name} by \`auth\` and by \`headers\``)
}

/**
 * Reports what calls cannot be sent by that match no action: a report-only area forwards them as its backend says
 * (C8.7).
 */
export function checkUnmatchedCalls(backend: Shapeable, area: string, report: Report): void {
  const calls: CallShape = {
    described: `a call of the area ${area} that matches no action`,
    level: 'business',
    parameters: [],
    isNested: true,
    reportOnly: true,
  }
  checkTemplates(templatesOf(backend.rules, ['backends', backend.name], true), calls, report)
}

function checkResponseHeaders(names: readonly string[], at: KeyPath, report: Report): void {
  for (const [index, name] of names.entries())
    if (isForbiddenResponseHeader(name))
      report.error([...at, 'responseHeaders', index], 'is a header that never passes from an upstream')
}

function compileTargets(
  { target, targets }: ForwardingConfig,
  at: KeyPath,
  report: Report,
): readonly UpstreamAddress[] | undefined {
  if (target !== undefined && targets !== undefined) {
    report.error([...at, 'targets'], 'stands beside `target`; expected one of the two')
    return undefined
  }
  const given = targets?.map((text, index) => ({ text, path: [...at, 'targets', index] }))
  const named = given ?? (target === undefined ? [] : [{ text: target, path: [...at, 'target'] }])
  if (named.length === 0) report.error(at, 'has no upstream; expected `target` or `targets`')
  const parsed = named.map(({ text, path }) => {
    const address = parseUpstreamAddress(text)
    if (address === undefined)
      report.error(path, 'must be a plain address, without query, escapes or dots in its path')
    return address
  })
  const usable = parsed.filter((address) => address !== undefined)
  return usable.length > 0 && usable.length === parsed.length ? usable : undefined
}

function compileIdentity(
  name: string,
  { identity }: ForwardingConfig,
  at: KeyPath,
  report: Report,
  { signer, clock }: ForwardingDependencies,
): Identify {
  if (identity === 'headers') return identifyByHeaders
  if (identity === 'none') return identifyNobody
  if (signer !== undefined) return identifyByToken(signer, name, clock)
  report.error(
    [...at, 'identity'],
    'is token, which takes keys of our own to sign with, and a sidecar has none',
  )
  return identifyByHeaders
}

/** All files are read and tried out at once, so that a broken one is told at start and not by the first call. */
async function compileTls({ tls }: ForwardingConfig, at: KeyPath, report: Report): Promise<UpstreamTls> {
  const where = [...at, 'tls']
  const [ca, cert, key] = await Promise.all(
    (['ca', 'cert', 'key'] as const).map((file) => readOrReport(tls[file], [...where, file], report)),
  )
  if ((tls.cert === undefined) !== (tls.key === undefined))
    report.error(where, 'has one of `cert` and `key`; expected both, or neither')
  const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  try {
    createSecureContext(files)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    report.error(where, `names files that are no certificates and key that go together${code}`)
  }
  return {
    ...files,
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
    unverified: tls.verify === 'off-insecure',
  }
}

export async function readOrReport(
  file: string | undefined,
  path: KeyPath,
  report: Report,
): Promise<Buffer | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file)
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'it could not be read'
    report.error(path, `names a file that cannot be read: ${reason}`)
    return undefined
  }
}
