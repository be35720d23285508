import type { KeyPath, Problems } from '../../config/problems.ts'
import type { Backend } from '../../contracts/backend.ts'
import { compileFixedHeaders, compileQueryTemplate } from '../template.ts'
import { type CallShape, checkTemplates } from './check-templates.ts'
import { checkDataInXml, checkDataKey } from './compile-answers.ts'
import { compileExchange, type ExchangeChanges, reportTwoOfOneHeader } from './compile-exchange.ts'
import { callersWithoutIssuer, mergeNamed, notReplaced, reportTakenNames, templatesOf } from './compile-request.ts'
import { compileOperationXml } from './compile-xml.ts'
import type { HttpBackend } from './http.ts'
import type { OfferedOperation } from './offered-operations.ts'
import type { ExchangeRules, RequestRules } from './rules.ts'
import type { OperationUpstream } from './schema.ts'
import type { XmlSection } from './xml-schema.ts'

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
    readonly operation: Omit<OfferedOperation, 'path' | 'query' | 'headers'>
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
  problems: Problems,
): Shapeable {
  const places = { own: [...at, 'upstream'], shared: ['backends', backend.name] }
  const own = upstream === undefined ? {} : compileOwn(backend, upstream, places.own, problems)
  checkDataKey(upstream ?? {}, backend, producesOwn, places.own, problems)
  const rules = { ...backend.rules, ...own, ...mergeNamed(backend.rules, own) }
  if (own.data ?? own.xml) checkDataInXml(rules, places.own, problems)
  checkTemplates(
    [
      ...templatesOf(own, places.own, false),
      ...templatesOf(notReplaced(backend.rules, own), places.shared, true),
    ],
    calls,
    problems,
  )
  if (own.query ?? own.queryOnly) reportTakenNames(rules, places.own, problems)
  if (own.headers ?? own.credentials) reportTwoOfOneHeader(rules, places.own, problems)
  if (calls.severalIssuers) warnOfSameIds(rules, at, problems)
  const query = compileQueryTemplate({ query: rules.query, queryOnly: undefined, strictQuery: false })
  const headers = compileFixedHeaders(rules.headers)
  offered.all.push({ ...offered.operation, path: rules.path, query, headers })
  if (rules.responseHeaders.length > 0 || rules.redirects !== undefined)
    return backend.withRules({ ...rules, operations: offered.all })
  return Object.keys(own).length === 0 ? backend : backend.withRules(rules)
}

function warnOfSameIds(rules: RequestRules, at: KeyPath, problems: Problems): void {
  const [name] = callersWithoutIssuer(rules)
  if (name !== undefined)
    problems.warn(
      at,
      `sends {${name}} without saying which issuer's it is: another issuer may give the same id to somebody else`,
      'add {issuer}, the name of the issuer, to path, query or headers',
    )
}

function compileOwn(
  { format, payload, xmlSection: inherited, sender }: Shapeable,
  upstream: OperationUpstream,
  at: KeyPath,
  problems: Problems,
): ExchangeChanges {
  const xml = compileOperationXml(upstream, { format, payload, inherited }, at, problems)
  const shared = { sources: sender.sources, targets: sender.targets.all.map(({ address }) => address) }
  return { ...compileExchange(upstream, shared, at, problems), ...(xml && { xml }) }
}

/**
 * Reports what calls cannot be sent by that match no action: a report-only area forwards them as its backend says
 * (C8.7).
 */
export function checkUnmatchedCalls(backend: Shapeable, area: string, problems: Problems): void {
  const calls: CallShape = {
    described: `a call of the area ${area} that matches no action`,
    level: 'business',
    parameters: [],
    isNested: true,
    reportOnly: true,
  }
  checkTemplates(templatesOf(backend.rules, ['backends', backend.name], true), calls, problems)
}
