import type { KeyPath, Problems } from '../../../base/config/problems.ts'
import type { BackendFormat, Payload } from '../../../base/contracts/calls/backend.ts'
import { parseJsonPointer } from '../../../base/http/body/json.ts'
import { bindingProblem, declaredPrefix, NamespaceScope } from '../../../base/http/xml/namespaces.ts'
import type { PathRule } from '../../../base/http/xml/plain-document.ts'
import { isQName, isXmlText } from '../../../base/http/xml/syntax.ts'
import { isTls, type UpstreamAddress } from '../../upstream/socket.ts'
import type { ErrorPaths, RedirectsConfig, XmlSection } from './schema/answer-schema.ts'
import type { AnswerTypes } from './response/answer-types.ts'
import { compilePath } from '../templates/check-templates.ts'
import { type OwnErrors, searchedPlaces } from './response/own-errors.ts'
import type { RedirectRules } from './target/redirects.ts'
import type { ExchangeRules, XmlSetting } from './rules.ts'
import type { OperationUpstream } from './schema/schema.ts'

/** Statuses of the protocol that may stand for an upstream's own (C2). */
const STATUSES: ReadonlySet<number> = new Set([400, 404, 405, 406, 413, 414, 415, 429, 431, 500, 503])
/** The 4xx statuses of an upstream that never pass as its own (C8.4). */
const NOT_OWN: ReadonlySet<string> = new Set(['401', '403', '407'])

type AnswerConfig = Pick<
  OperationUpstream,
  'errors' | 'errorStatus' | 'redirects' | 'data' | 'payload' | 'types'
>

/**
 * Compiles those keys about answers (C8.8) that are given.
 * @param at the section that holds them
 * @param targets where the calls are sent
 */
export function compileAnswers(
  config: AnswerConfig,
  targets: readonly UpstreamAddress[],
  at: KeyPath,
  problems: Problems,
): Partial<ExchangeRules> {
  const { errors, errorStatus, redirects, data, types } = config
  return {
    ...(types !== undefined && { types: compileTypes(types, [...at, 'types'], problems) }),
    ...(errors !== undefined && { errors: compileErrors(errors, [...at, 'errors'], problems) }),
    ...(data !== undefined && { data: parseJsonPointer(data) }),
    ...(redirects && { redirects: compileRedirects(redirects, targets, [...at, 'redirects'], problems) }),
    ...(errorStatus && { errorStatus: compileErrorStatus(errorStatus, [...at, 'errorStatus'], problems) }),
  }
}

/** How media types, in lower case, are read. Undefined: there are none; an operation takes its backend's away. */
export function compileTypes<Kind>(
  config: Readonly<Record<string, Kind>>,
  at: KeyPath,
  problems: Problems,
): ReadonlyMap<string, Kind> | undefined {
  const types = new Map<string, Kind>()
  for (const [name, kind] of Object.entries(config)) {
    if (types.has(name.toLowerCase())) problems.error([...at, name], 'is the same type as one before it')
    types.set(name.toLowerCase(), kind)
  }
  return types.size === 0 ? undefined : types
}

type Combined = Pick<ExchangeRules, 'payload' | 'data' | 'errors' | 'types'>

/**
 * Reports keys of answers that do not go together, where a section says one of them.
 * @param own what this section says @param all with what its backend says
 */
export function checkAnswers(own: Partial<Combined>, all: Combined, at: KeyPath, problems: Problems): void {
  const { payload, data, errors, types } = all
  const isOwn = (key: keyof Combined): boolean => own.payload !== undefined || own[key] !== undefined
  const beside = `and the answers have \`payload: ${payload}\``
  const report = (key: keyof Combined, why: string): void =>
    problems.error([...at, own[key] === undefined ? 'payload' : key], `${why}, ${beside}`)
  if (data !== undefined && payload !== 'bare' && isOwn('data')) report('data', '`data` is for bare answers')
  if (types !== undefined && payload === 'envelope' && [...types.values()].includes('text') && isOwn('types'))
    report('types', '`types` names a text, which is no envelope')
  if (searchedPlaces(errors) !== undefined && payload === 'text' && isOwn('errors'))
    report('errors', '`errors.present` is for data with members')
}

/** Reports what an operation says of answers in an envelope though its own have none (C7.1). */
export function checkProduces({ data, payload, types }: AnswerConfig, at: KeyPath, problems: Problems): void {
  const isMade = payload === 'text' || payload === 'none'
  for (const [key, isSaid] of Object.entries({
    data: data !== undefined,
    types: types !== undefined,
    payload: isMade,
  }))
    if (isSaid) problems.error([...at, key], 'is for enveloped answers, and this operation has `produces`')
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
  const { list, code, message, present, statuses = {} } = config
  if (code === undefined && message === undefined && present === undefined)
    problems.error(at, 'names nothing to read; expected `code`, `message` or both')
  if (code === undefined && Object.keys(statuses).length > 0)
    problems.error([...at, 'statuses'], 'are by code, and `code` does not say where it stands')
  for (const [name, status] of Object.entries(statuses))
    reportStatus(status, [...at, 'statuses', name], problems)
  return {
    present: present === undefined ? undefined : parseJsonPointer(present),
    statuses: new Map(Object.entries(statuses)),
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
  for (const [given, status] of Object.entries(config)) {
    if (NOT_OWN.has(given))
      problems.error([...at, given], 'never reaches a client, and so has no other status')
    reportStatus(status, [...at, given], problems)
  }
  return new Map(Object.entries(config).map(([given, status]) => [Number(given), status]))
}

function reportStatus(status: number, at: KeyPath, problems: Problems): void {
  if (!STATUSES.has(status)) problems.error(at, `expected one of ${[...STATUSES].join(', ')}, got ${status}`)
}

/** The settings of a backend or operation that its section `xml` depends on. */
export interface XmlContext {
  readonly format: BackendFormat
  readonly payload: Payload
  readonly types?: AnswerTypes | undefined
  /** The section of the backend, if this is an operation's. */
  readonly inherited: XmlSection | undefined
}

/** Compiles a section, or reports what is wrong in it. @param at the section's own path */
export function compileXml(
  given: XmlSection,
  { format, payload, types, inherited }: XmlContext,
  at: KeyPath,
  problems: Problems,
): XmlSetting {
  const section = { ...inherited, ...given }
  const { dialect = 'postern', root, attributes = {}, namespaces } = section
  if (dialect === 'postern') {
    for (const key of Object.keys(given))
      if (key !== 'dialect') problems.error([...at, key], 'needs `dialect: plain` beside it')
    return { section, rules: undefined }
  }
  const isRead = format === 'xml' || [...(types?.values() ?? [])].includes('xml')
  if (!isRead)
    problems.error([...at, 'dialect'], 'is plain, which needs `format: xml`, or `types` that are read as xml')
  if (payload === 'envelope')
    problems.error(
      [...at, 'dialect'],
      'is plain, but an envelope is XML of Postern; leave `payload: envelope` out',
    )
  if (root !== undefined && (!isQName(root) || root.startsWith('xmlns:')))
    problems.error([...at, 'root'], 'is no name of an XML element')
  checkAttributes(section, at, problems)
  const rules = {
    root,
    attributes,
    stripNamespaces: namespaces === 'strip',
    paths: compilePaths(section, at, problems),
  }
  return { section, rules }
}

function checkAttributes({ root, attributes = {} }: XmlSection, at: KeyPath, problems: Problems): void {
  const path = [...at, 'attributes']
  if (Object.keys(attributes).length > 0 && root === undefined)
    problems.error(path, 'are of the element that `root` names; expected `root` too')
  let sound = true
  for (const [name, value] of Object.entries(attributes)) {
    const prefix = declaredPrefix(name)
    const problem = prefix === undefined ? undefined : bindingProblem(prefix, value)
    const why = !isQName(name) ? 'is no name of an XML attribute' : !isXmlText(value) ? UNFIT : problem
    if (why === undefined) continue
    problems.error([...path, name], why)
    sound = false
  }
  if (sound && (root === undefined || isQName(root))) checkPrefixes(root ?? 'root', attributes, at, problems)
}

const UNFIT = 'holds a character that XML cannot'

/** The XML of an operation, where it differs from its backend's; undefined: it is the backend's. */
export function compileOperationXml(
  given: Partial<Pick<XmlContext, 'format' | 'payload' | 'types'>> & {
    readonly xml?: XmlSection | undefined
  },
  backend: XmlContext,
  at: KeyPath,
  problems: Problems,
): XmlSetting | undefined {
  const { format = backend.format, payload = backend.payload, types = backend.types, xml } = given
  const isChanged = given.format !== undefined || given.payload !== undefined
  if (xml === undefined && (backend.inherited === undefined || !isChanged || format !== 'xml'))
    return undefined
  return compileXml(
    xml ?? {},
    { format, payload, types, inherited: backend.inherited },
    [...at, 'xml'],
    problems,
  )
}

/** Every prefix of the root and its attributes must be declared among them. */
function checkPrefixes(
  root: string,
  attributes: Readonly<Record<string, string>>,
  at: KeyPath,
  problems: Problems,
): void {
  const scope = new NamespaceScope((why) => {
    throw new SyntaxError(why)
  })
  try {
    scope.enter(root, attributes)
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : 'cannot be written'
    problems.error([...at, root.includes(':') ? 'root' : 'attributes'], `cannot be written as XML: ${why}`)
  }
}

interface MutableRule extends PathRule {
  type: PathRule['type']
  isArray: boolean
  readonly children: Map<string, MutableRule>
}

const newRule = (): MutableRule => ({ type: undefined, isArray: false, children: new Map() })

/** What each list of paths says of the last name of a path. */
const LISTS: Readonly<Record<'arrays' | 'numbers' | 'booleans', (rule: MutableRule) => void>> = {
  arrays: (rule) => (rule.isArray = true),
  numbers: (rule) => (rule.type = 'number'),
  booleans: (rule) => (rule.type = 'boolean'),
}

function compilePaths(section: XmlSection, at: KeyPath, problems: Problems): PathRule {
  const top = newRule()
  for (const [list, apply] of Object.entries(LISTS) as [keyof typeof LISTS, (rule: MutableRule) => void][])
    for (const [index, text] of (section[list] ?? []).entries()) {
      const path = [...at, list, index]
      const names = text.split('/')
      const problem = problemOf(names, list, section)
      if (problem !== undefined) problems.error(path, problem)
      else applyTo(top, names, apply, (why) => problems.error(path, why))
    }
  return top
}

function problemOf(
  names: readonly string[],
  list: keyof typeof LISTS,
  { namespaces }: XmlSection,
): string | undefined {
  const [last = ''] = names.slice(-1)
  const isAttribute = last.startsWith('@')
  const elements = isAttribute ? names.slice(0, -1) : names
  const all = isAttribute ? [...elements, last.slice(1)] : elements
  const wrong = all.find((name) => !isQName(name))
  if (wrong !== undefined) return `holds ${wrong}, which is no name of an XML element`
  if (namespaces === 'strip' && all.some((name) => name.includes(':')))
    return 'holds a prefix, and `namespaces: strip` leaves them out'
  if (list !== 'arrays') return elements.length === 0 ? 'names an attribute without an element' : undefined
  if (isAttribute) return 'names an attribute, and an element has each attribute once'
  return elements.length < 2 ? 'names the root element, of which there is one' : undefined
}

/** Walks from the top to the last name of a path. A number or boolean holds no elements, and is of one type. */
function applyTo(
  top: MutableRule,
  names: readonly string[],
  apply: (rule: MutableRule) => void,
  refuse: (why: string) => void,
): void {
  let rule = top
  for (const name of names) {
    if (rule.type !== undefined && !name.startsWith('@')) {
      refuse(`stands in what another path says is a ${rule.type}`)
      return
    }
    const next = rule.children.get(name) ?? newRule()
    rule.children.set(name, next)
    rule = next
  }
  const before = rule.type
  apply(rule)
  if (before !== undefined && rule.type !== before) refuse(`is listed as a ${before} too`)
  if (rule.type !== undefined && [...rule.children.keys()].some((name) => !name.startsWith('@')))
    refuse(`is a ${rule.type}, but another path stands in it`)
}
