import type { KeyPath, Problems } from '../../../base/config/problems.ts'
import type { Template } from '../../../base/contracts/calls/templates.ts'
import { foldName, isMadeByPostern, neverPasses } from '../../../base/http/head/end-to-end-headers.ts'
import { isToken } from '../../../base/http/head/header-text.ts'
import { readingsOf } from '../../../base/http/head/query.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import {
  compileFixedHeaders,
  compileQueryTemplate,
  type FixedHeader,
  type FixedHeaders,
  placeholdersOf,
} from '../templates/places.ts'
import { compileAuthorization } from './auth/compile.ts'
import type { Credentials } from './auth/credentials.ts'
import type { TokenSources } from './auth/token-credentials.ts'
import {
  type CallShape,
  checkTemplates,
  compilePath,
  compileText,
  usedPath,
  type UsedTemplate,
  usedText,
} from '../templates/check-templates.ts'
import { bodyMaking, compileBodyRecipe, usedInBody } from './compile-body.ts'
import {
  checkAnswers,
  checkDataInXml,
  checkProduces,
  compileAnswers,
  compileOperationXml,
} from './compile-answers.ts'
import type { HttpBackend } from './http.ts'
import { type BoundNames, boundNames, compileKeptOut, hiddenNames, keptOutOfUnmatched } from './kept-out.ts'
import { namesValues } from './schema/named-values.ts'
import type { OfferedOperation } from './target/offered-operations.ts'
import type { RedirectRules } from './target/redirects.ts'
import { isForbiddenResponseHeader } from './response/response.ts'
import type { ExchangeRules, RequestOverrides, RequestRules } from './rules.ts'
import type { OperationUpstream } from './schema/schema.ts'
import type { VaryingRules } from './target/varying-targets.ts'

type TemplateRules = Pick<RequestOverrides, 'path' | 'query' | 'headers'> & {
  readonly credentials?: Credentials | undefined
  readonly varying?: VaryingRules | undefined
  readonly redirects?: RedirectRules | undefined
}

type RequestConfig = Pick<OperationUpstream, Exclude<keyof RequestRules, 'bodyUse'>>

/** Compiles the keys that are given. @param at the section that holds them */
function compileRequest(config: RequestConfig, at: KeyPath, problems: Problems): RequestOverrides {
  const { path, query, queryOnly, strictQuery, headers, requestHeaders, method, timeouts, retries } = config
  reportRequestHeaders(requestHeaders ?? [], [...at, 'requestHeaders'], problems)
  return {
    ...(path !== undefined && { path: compilePath(path, [...at, 'path'], problems) }),
    ...(query && { query: compileQuery(query, [...at, 'query'], problems) }),
    ...(queryOnly && { queryOnly }),
    ...(strictQuery !== undefined && { strictQuery }),
    ...(headers && { headers: compileHeaders(headers, [...at, 'headers'], problems) }),
    ...(requestHeaders && { requestHeaders: new Set(requestHeaders.map((each) => each.toLowerCase())) }),
    ...(method !== undefined && { method }),
    ...(timeouts && { timeouts }),
    ...(retries !== undefined && { retries }),
  }
}

/** Merges by name what an operation and its backend say: where both have a name, the operation wins. */
const mergeNamed = (
  shared: RequestRules,
  own: RequestOverrides,
): Pick<RequestRules, 'query' | 'headers' | 'timeouts'> => ({
  query: own.query ? new Map([...shared.query, ...own.query]) : shared.query,
  headers: own.headers ? new Map([...shared.headers, ...own.headers]) : shared.headers,
  timeouts: own.timeouts ? { ...shared.timeouts, ...own.timeouts } : shared.timeouts,
})

const notReplaced = (shared: TemplateRules, own: TemplateRules): TemplateRules => ({
  ...('path' in own ? {} : { path: shared.path }),
  ...('redirects' in own ? {} : { redirects: shared.redirects }),
  varying: shared.varying,
  ...('credentials' in own ? {} : { credentials: shared.credentials }),
  query: without(shared.query, own.query),
  headers: without(shared.headers, own.headers),
})

const without = <V>(all: ReadonlyMap<string, V> = new Map(), taken?: ReadonlyMap<string, unknown>) =>
  new Map([...all].filter(([name]) => taken?.has(name) !== true))

/** The templates that calls are sent by, or sent on by (C8.8). @param at the section that holds them */
function templatesOf(
  { path, query, headers, redirects, credentials, varying }: TemplateRules,
  at: KeyPath,
  isShared: boolean,
): readonly UsedTemplate[] {
  return [
    ...(path ? [usedPath(path, [...at, 'path'], isShared)] : []),
    ...[...(query ?? [])].map(([name, template]) => usedText(template, [...at, 'query', name], isShared)),
    ...[...(headers?.values() ?? [])].map(({ written, template }) =>
      usedText(template, [...at, 'headers', written], isShared),
    ),
    ...(redirects?.within ?? []).map((listed, index) =>
      usedPath(listed, [...at, 'redirects', 'within', index], isShared),
    ),
    ...(credentials?.templates ?? []).map((each) =>
      usedText(each.template, [...at, 'auth', ...each.at], isShared, 'certain'),
    ),
    ...(varying?.templates ?? []).map((each) =>
      usedText(each.template, [...at, ...each.at], isShared, 'certain'),
    ),
  ]
}

/** Reports names that `queryOnly` lets pass and `query` takes out. @param at the section that holds one of the two */
export function reportTakenNames(
  { query, queryOnly }: Pick<RequestRules, 'query' | 'queryOnly'>,
  at: KeyPath,
  problems: Problems,
): void {
  const taken = new Set([...query.keys()].flatMap(readingsOf))
  for (const name of queryOnly ?? [])
    if (readingsOf(name).some((reading) => taken.has(reading)))
      problems.error(
        at,
        `lets "${name}" of the client pass by \`queryOnly\`, and takes it out because of \`query\``,
      )
}

function compileQuery(
  config: Readonly<Record<string, string>>,
  at: KeyPath,
  problems: Problems,
): ReadonlyMap<string, Template> {
  for (const name of Object.keys(config))
    if (readingsOf(name).includes(''))
      problems.error(
        [...at, name],
        'is a name of nothing but white space, brackets, dots and the like, which services leave out',
      )
  return new Map(
    Object.entries(config).map(([name, source]) => [name, compileText(source, [...at, name], problems)]),
  )
}

/** Printable ASCII without blanks at its ends, which a receiver would trim. */
const PRINTABLE = /^[!-~](?:[ -~]*[!-~])?$/

function compileHeaders(
  config: Readonly<Record<string, string>>,
  at: KeyPath,
  problems: Problems,
): FixedHeaders {
  const headers = new Map<string, FixedHeader>()
  for (const [written, source] of Object.entries(config)) {
    const path = [...at, written]
    const folded = foldName(written)
    const template = compileText(source, path, problems)
    const problem = headers.has(folded)
      ? 'is the same header as one before it'
      : headerProblem(written, template)
    if (problem === undefined) headers.set(folded, { written, name: written.toLowerCase(), template })
    else problems.error(path, problem)
  }
  return headers
}

function headerProblem(name: string, template: Template): string | undefined {
  if (isMadeByPostern(name)) return 'is a header that Postern makes itself'
  // The problem of a template that could not be read is reported already.
  if (template.length === 0) return undefined
  if (PRINTABLE.test(template.map((part) => (part.kind === 'text' ? part.text : part.written)).join('')))
    return undefined
  return 'has a value with blanks at its ends, or with characters beyond printable ASCII'
}

function reportRequestHeaders(names: readonly string[], at: KeyPath, problems: Problems): void {
  for (const [index, name] of names.entries()) {
    if (!isToken(name)) problems.error([...at, index], 'is no name of a header')
    else if (neverPasses(name)) problems.error([...at, index], 'is a header that never passes from a client')
  }
}

type ExchangeConfig = Omit<OperationUpstream, 'backend'>

/** The keys that an operation sets. All others are the backend's. */
type ExchangeChanges = Partial<Omit<ExchangeRules, 'timeouts'>> & RequestOverrides

/** Compiles the keys of a backend or operation (C8.7) that are given. @param at the section that holds them */
export function compileExchange(
  config: ExchangeConfig,
  { sources, targets }: { readonly sources: TokenSources; readonly targets: readonly UpstreamAddress[] },
  at: KeyPath,
  problems: Problems,
): ExchangeChanges {
  const { responseHeaders, format, payload, ranges, forwarded } = config
  checkResponseHeaders(responseHeaders ?? [], at, problems)
  return {
    ...compileRequest(config, at, problems),
    ...(responseHeaders && { responseHeaders }),
    ...compileAuthorization(config, at, problems, sources),
    ...(format && { format }),
    ...(payload && { payload }),
    ...(ranges && { ranges }),
    ...(forwarded && { forwarded }),
    ...compileAnswers(config, targets, at, problems),
  }
}

function checkResponseHeaders(names: readonly string[], at: KeyPath, problems: Problems): void {
  for (const [index, name] of names.entries())
    if (isForbiddenResponseHeader(name))
      problems.error([...at, 'responseHeaders', index], 'is a header that never passes from an upstream')
}

export function reportTwoOfOneHeader(
  { headers, credentials }: Pick<ExchangeRules, 'headers' | 'credentials'>,
  at: KeyPath,
  problems: Problems,
): void {
  if (credentials !== undefined && headers.has(foldName(credentials.name)))
    problems.error(at, `sets the header ${credentials.name} by \`auth\` and by \`headers\``)
}

export interface ForwardedOperation {
  /** Absent: the operation says nothing different. */
  readonly upstream: OperationUpstream | undefined
  readonly calls: CallShape
  /** The client's method; GET includes HEAD. */
  readonly method: string
  /** Whether its answers are of types of their own, without an envelope (C7.1). */
  readonly producesOwn: boolean
  /** The names by which calls of the backend tell the business. */
  readonly bound: BoundNames
  /** Media types of bodies that stream through; undefined: none do. */
  readonly consumes: readonly string[] | undefined
  /** It is added to `all`: the operations of this configuration that the same backend answers. */
  readonly offered: {
    readonly operation: Omit<OfferedOperation, 'path' | 'query' | 'headers'>
    readonly all: OfferedOperation[]
  }
  readonly at: KeyPath
}

/** The backend that answers an operation: `backend` itself, unless the operation says something different (C8.7). */
export function compileOperationBackend(
  backend: HttpBackend,
  { upstream, calls, method, producesOwn, bound, consumes, offered, at }: ForwardedOperation,
  problems: Problems,
): HttpBackend {
  const places = { own: [...at, 'upstream'], shared: ['backends', backend.name] }
  const own = upstream === undefined ? {} : compileOwn(backend, upstream, places.own, problems)
  if (producesOwn) checkProduces(upstream ?? {}, places.own, problems)
  const merged = { ...backend.rules, ...own, ...mergeNamed(backend.rules, own) }
  const body = { format: merged.format, method: merged.method ?? method, calls }
  const made = upstream?.body && compileBodyRecipe(upstream.body, body, places.own, problems)
  const keptOut = compileKeptOut(
    {
      bound,
      own: boundNames(backend.rules, upstream),
      rules: merged,
      recipe: made,
      calls,
      method,
      consumes,
      at,
    },
    problems,
  )
  const recipe = made && (keptOut === undefined ? made : { ...made, kept: hiddenNames(bound, made, calls) })
  const bodyUse = bodyMaking(recipe, placeholdersOf(merged))
  const rules = { ...merged, bodyUse, keptOut }
  checkAnswers(own, rules, places.own, problems)
  if (own.data ?? own.xml) checkDataInXml(rules, places.own, problems)
  checkTemplates(
    [
      ...templatesOf(own, places.own, false),
      ...templatesOf(notReplaced(backend.rules, own), places.shared, true),
      ...(recipe === undefined ? [] : usedInBody(recipe, places.own)),
    ],
    calls,
    problems,
  )
  if (own.query ?? own.queryOnly) reportTakenNames(rules, places.own, problems)
  if (own.headers ?? own.credentials) reportTwoOfOneHeader(rules, places.own, problems)
  if (calls.severalIssuers) warnOfSameIds(rules, at, problems)
  const query = compileQueryTemplate({
    query: rules.query,
    queryOnly: undefined,
    strictQuery: false,
    keptOut,
  })
  const headers = compileFixedHeaders(rules.headers)
  offered.all.push({ ...offered.operation, path: rules.path, query, headers })
  if (rules.responseHeaders.length > 0 || rules.redirects !== undefined)
    return backend.withRules({ ...rules, operations: offered.all })
  const isSame = Object.keys(own).length === 0 && bodyUse === undefined && keptOut === undefined
  return isSame ? backend : backend.withRules(rules)
}

/** Warns of callers in templates without `{issuer}`: subjects and clients of two issuers may have the same id. */
function warnOfSameIds(rules: RequestRules, at: KeyPath, problems: Problems): void {
  const names = new Set(placeholdersOf(rules).map(({ written }) => written))
  const name = ['subject', 'client'].find((each) => names.has(each))
  if (name !== undefined && !names.has('issuer'))
    problems.warn(
      at,
      `sends {${name}} without saying which issuer's it is: another issuer may give the same id to somebody else`,
      'add {issuer}, the name of the issuer, to path, query or headers',
    )
}

function compileOwn(
  { format, payload, rules }: HttpBackend,
  upstream: OperationUpstream,
  at: KeyPath,
  problems: Problems,
): ExchangeChanges {
  const exchange = compileExchange(upstream, rules, at, problems)
  const given = { ...upstream, types: exchange.types }
  const backend = { format, payload, types: rules.types, inherited: rules.xml?.section }
  const xml = compileOperationXml(given, backend, at, problems)
  return { ...exchange, ...(xml && { xml }), ...(namesValues(upstream) && { namesValues: true }) }
}

/** The backend of calls that match no action: a report-only area forwards them, too (C8.7). Checks its templates for them. */
export function compileUnmatched(
  backend: HttpBackend,
  area: string,
  bound: BoundNames,
  problems: Problems,
): HttpBackend {
  const calls: CallShape = {
    described: `a call of the area ${area} that matches no action`,
    level: 'business',
    parameters: [],
    isNested: true,
    reportOnly: true,
  }
  checkTemplates(templatesOf(backend.rules, ['backends', backend.name], true), calls, problems)
  const keptOut = keptOutOfUnmatched(backend.rules, bound)
  return keptOut === undefined ? backend : backend.withRules({ keptOut })
}
