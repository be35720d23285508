import type { KeyPath, Problems } from '../../config/problems.ts'
import { foldName, isMadeByPostern, neverPasses } from '../../http/end-to-end-headers.ts'
import { isToken } from '../../http/header-text.ts'
import { readingsOf } from '../../http/query.ts'
import { type FixedHeader, type FixedHeaders, placeholdersIn, type Template } from '../template.ts'
import { compilePath, compileText, usedPath, type UsedTemplate, usedText } from './check-templates.ts'
import type { RedirectRules } from './redirects.ts'
import type { RequestChanges, RequestRules } from './rules.ts'
import type { OperationUpstream } from './schema.ts'

type TemplateRules = Pick<RequestChanges, 'path' | 'query' | 'headers'> & {
  readonly redirects?: RedirectRules | undefined
}

type RequestConfig = Pick<OperationUpstream, keyof RequestRules>

/** Compiles the keys that are given. @param at the section that holds them */
export function compileRequest(config: RequestConfig, at: KeyPath, problems: Problems): RequestChanges {
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

/** Of an operation and its backend what is said name by name: where both say it, the operation does. */
export const mergeNamed = (
  shared: RequestRules,
  own: RequestChanges,
): Pick<RequestRules, 'query' | 'headers' | 'timeouts'> => ({
  query: own.query ? new Map([...shared.query, ...own.query]) : shared.query,
  headers: own.headers ? new Map([...shared.headers, ...own.headers]) : shared.headers,
  timeouts: own.timeouts ? { ...shared.timeouts, ...own.timeouts } : shared.timeouts,
})

/** What of a backend's templates an operation does not replace. */
export const notReplaced = (shared: TemplateRules, own: TemplateRules): TemplateRules => ({
  ...('path' in own ? {} : { path: shared.path }),
  ...('redirects' in own ? {} : { redirects: shared.redirects }),
  query: without(shared.query, own.query),
  headers: without(shared.headers, own.headers),
})

const without = <V>(all: ReadonlyMap<string, V> = new Map(), taken?: ReadonlyMap<string, unknown>) =>
  new Map([...all].filter(([name]) => taken?.has(name) !== true))

/** The templates that calls are sent by, or sent on by (C8.8). @param at the section that holds them */
export function templatesOf(
  { path, query, headers, redirects }: TemplateRules,
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
  ]
}

/**
 * The placeholders of callers in path, query and headers, where nothing beside them says whose they are: subjects and
 * clients of two issuers may have the same id.
 */
export function callersWithoutIssuer(rules: RequestRules): readonly string[] {
  const names = placeholdersIn(rules)
  return names.has('issuer') ? [] : ['subject', 'client'].filter((name) => names.has(name))
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
      : headerProblem(written, source)
    if (problem === undefined) headers.set(folded, { written, name: written.toLowerCase(), template })
    else problems.error(path, problem)
  }
  return headers
}

function headerProblem(name: string, source: string): string | undefined {
  if (isMadeByPostern(name)) return 'is a header that Postern makes itself'
  if (PRINTABLE.test(source)) return undefined
  return 'has a value with blanks at its ends, or with characters beyond printable ASCII'
}

function reportRequestHeaders(names: readonly string[], at: KeyPath, problems: Problems): void {
  for (const [index, name] of names.entries()) {
    if (!isToken(name)) problems.error([...at, index], 'is no name of a header')
    else if (neverPasses(name)) problems.error([...at, index], 'is a header that never passes from a client')
  }
}
