import type { KeyPath, Problems } from '../../config/problems.ts'
import { parseJsonPointer } from '../../http/json.ts'
import { isQName } from '../../http/xml-syntax.ts'
import { isTls, type UpstreamAddress } from '../../upstream/socket.ts'
import type { ErrorPaths, RedirectsConfig } from './answer-schema.ts'
import { compilePath } from './check-templates.ts'
import type { OwnErrors } from './own-errors.ts'
import type { RedirectRules } from './redirects.ts'
import type { ExchangeRules } from './rules.ts'
import type { OperationUpstream } from './schema.ts'

/** Statuses of the protocol that may be told in place of an upstream's own (C2). */
const TOLD: ReadonlySet<number> = new Set([400, 404, 405, 406, 413, 414, 415, 429, 431, 500, 503])
/** Those of an upstream's 4xx that never pass as its own (C8.4). */
const NOT_OWN: ReadonlySet<string> = new Set(['401', '403', '407'])

type AnswerConfig = Pick<OperationUpstream, 'errors' | 'errorStatus' | 'redirects' | 'data' | 'payload'>

/**
 * Compiles the keys that say what comes back (C8.8): those that are given.
 * @param at the section that holds them
 * @param targets where the calls are sent
 */
export function compileAnswers(
  config: AnswerConfig,
  targets: readonly UpstreamAddress[],
  at: KeyPath,
  problems: Problems,
): Partial<ExchangeRules> {
  const { errors, errorStatus, redirects, data, payload } = config
  if (data !== undefined && payload === 'envelope')
    problems.error([...at, 'data'], 'is for bare answers, and `payload: envelope` stands beside it')
  return {
    ...(errors !== undefined && { errors: compileErrors(errors, [...at, 'errors'], problems) }),
    ...(data !== undefined && { data: parseJsonPointer(data) }),
    ...(redirects && { redirects: compileRedirects(redirects, targets, [...at, 'redirects'], problems) }),
    ...(errorStatus && { errorStatus: compileErrorStatus(errorStatus, [...at, 'errorStatus'], problems) }),
  }
}

/**
 * Reports where an operation says `data` that its answers are not of.
 * @param backend how the backend of the operation answers
 */
export function checkDataKey(
  { data, payload }: AnswerConfig,
  backend: { readonly payload: 'bare' | 'envelope' },
  producesOwn: boolean,
  at: KeyPath,
  problems: Problems,
): void {
  if (data === undefined) return
  if (payload === undefined && backend.payload === 'envelope')
    problems.error([...at, 'data'], 'is for bare answers, and the backend answers envelopes')
  if (producesOwn)
    problems.error([...at, 'data'], 'is for enveloped answers, and this operation has `produces`')
}

/** Reports a path to the data that leads nowhere in XML of a service's own (C7.7): elements have names, not indexes. */
export function checkDataInXml(
  { data, xml }: Partial<Pick<ExchangeRules, 'data' | 'xml'>>,
  at: KeyPath,
  problems: Problems,
): void {
  const wrong = xml?.rules === undefined ? undefined : data?.find((step) => !isQName(step))
  if (wrong !== undefined)
    problems.error(
      [...at, 'data'],
      `holds ${wrong}, which is no name of an XML element`,
      'a list is given whole',
    )
}

function compileErrors(
  config: 'problem' | ErrorPaths,
  at: KeyPath,
  problems: Problems,
): OwnErrors | 'problem' {
  if (config === 'problem') return config
  const { list, code, message } = config
  if (code === undefined && message === undefined)
    problems.error(at, 'names nothing to read; expected `code`, `message` or both')
  return {
    list: list === undefined ? undefined : parseJsonPointer(list),
    code: code === undefined ? undefined : parseJsonPointer(code),
    messages: message === undefined ? [] : [parseJsonPointer(message)],
    codeOf: undefined,
  }
}

function compileRedirects(
  { max, within, origins }: RedirectsConfig,
  targets: readonly UpstreamAddress[],
  at: KeyPath,
  problems: Problems,
): RedirectRules {
  const isSecure = targets.length > 0 && targets.every(isTls)
  const named = origins.map((text, index) => {
    const path = [...at, 'origins', index]
    const url = URL.parse(text)
    if (url === null || url.pathname !== '/' || url.search !== '')
      problems.error(path, 'expected scheme, host and port alone, without a path')
    else if (isSecure && url.protocol === 'http:')
      problems.warn(
        path,
        'is never gone to: no redirect is followed from https to http',
        'name its https origin',
      )
    return url?.origin ?? ''
  })
  const listed = within.map((source, index) => compilePath(source, [...at, 'within', index], problems))
  return { max, within: listed.filter((path) => path !== undefined), origins: new Set(named) }
}

function compileErrorStatus(
  config: Readonly<Record<string, number>>,
  at: KeyPath,
  problems: Problems,
): ReadonlyMap<number, number> {
  for (const [given, told] of Object.entries(config)) {
    if (NOT_OWN.has(given))
      problems.error([...at, given], 'never reaches a client, and so has no other status')
    if (!TOLD.has(told))
      problems.error([...at, given], `expected one of ${[...TOLD].join(', ')}, got ${told}`)
  }
  return new Map(Object.entries(config).map(([given, told]) => [Number(given), told]))
}
