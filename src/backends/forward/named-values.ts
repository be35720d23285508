/** What the templates of a configuration name, in every place (C8.7): read off the sections as they were loaded. */
import type { Placeholder } from '../../contracts/templates.ts'
import { foldName } from '../../http/end-to-end-headers.ts'
import { parseTemplate, placeholdersIn } from '../templates/parse.ts'

/** The keys that an operation may say in place of its backend. */
const REPLACED = ['path', 'redirects', 'auth', 'host', 'target', 'body'] as const

/** The places of templates, in the section of a backend or of an operation. */
export type TemplateSections = Readonly<
  Partial<Record<(typeof REPLACED)[number] | 'query' | 'headers', unknown>>
>

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** All texts in a value, however deep. The names of members are none. */
const textsIn = (value: unknown): readonly string[] =>
  typeof value === 'string' ? [value] : isTree(value) ? Object.values(value).flatMap(textsIn) : []

const folded = (headers: unknown): object =>
  isTree(headers)
    ? Object.fromEntries(Object.entries(headers).map(([name, text]) => [foldName(name), text]))
    : {}

/**
 * The texts that calls of an operation are sent by: its own, and those of its backend that it does not replace.
 * @param own the section `upstream` of the operation
 */
function textsOf(backend: TemplateSections, own: TemplateSections): readonly string[] {
  const replaced = REPLACED.map((key) => own[key] ?? backend[key])
  const query = { ...(backend.query ?? {}), ...(own.query ?? {}) }
  const headers = { ...folded(backend.headers), ...folded(own.headers) }
  return textsIn([...replaced, query, headers])
}

/** Of a text that is no template: the check of templates reports it. */
const placeholdersOf = (text: string): readonly Placeholder[] => {
  const template = parseTemplate(text)
  return typeof template === 'string' ? [] : placeholdersIn(template)
}

const valueNamesIn = (texts: readonly string[]): ReadonlySet<string> =>
  new Set(texts.flatMap(placeholdersOf).flatMap(({ to }) => (to.kind === 'value' ? [to.name] : [])))

/** The names of the values of a business that calls of an operation are sent with. */
export const namedValues = (backend: TemplateSections, own: TemplateSections = {}): ReadonlySet<string> =>
  valueNamesIn(textsOf(backend, own))

/** Whether a section names a value of a business, be it replaced or not: then its calls need them. */
export const namesValues = (section: TemplateSections): boolean => namedValues(section).size > 0

/** Whether some place tells the service the code of the business. Unreadable templates count: they are reported elsewhere. */
export const namesBusiness = (backend: TemplateSections, own: TemplateSections = {}): boolean =>
  textsOf(backend, own).some(
    (text) =>
      typeof parseTemplate(text) === 'string' ||
      placeholdersOf(text).some(({ written }) => written === 'business'),
  )
