/** The names that the templates of a configuration use, in every place (C8.7), read from the sections as they were loaded. */
import { foldName } from '../../../../base/http/head/end-to-end-headers.ts'
import { parseTemplate, placeholdersIn, placeholdersInText } from '../../templates/parse.ts'

/** The keys that an operation may say in place of its backend. */
const REPLACED = ['path', 'redirects', 'auth', 'host', 'target', 'body'] as const

/** The places of templates, in the section of a backend or of an operation. */
export type TemplateSections = Readonly<
  Partial<Record<(typeof REPLACED)[number] | 'query' | 'headers', unknown>>
>

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** All texts in a value, however deep. The names of members do not count, not even in the tree of a body. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return [value]
  if (!isTree(value)) return []
  const members = (value as { readonly members?: unknown }).members
  return Array.isArray(members)
    ? (members as readonly (readonly [string, unknown])[]).flatMap(([, member]) => textsIn(member))
    : Object.values(value).flatMap(textsIn)
}

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

const valueNamesIn = (texts: readonly string[]): ReadonlySet<string> =>
  new Set(texts.flatMap(placeholdersInText).flatMap(({ to }) => (to.kind === 'value' ? [to.name] : [])))

/** The names of the values of a business that calls of an operation are sent with. */
export const namedValues = (backend: TemplateSections, own: TemplateSections = {}): ReadonlySet<string> =>
  valueNamesIn(textsOf(backend, own))

/** Whether calls of an operation are sent with the user, as `{subject}`: a machine has none (C6.1.5a). */
export const namesSubject = (backend: TemplateSections, own: TemplateSections = {}): boolean =>
  textsOf(backend, own)
    .flatMap(placeholdersInText)
    .some(({ to }) => to.kind === 'name' && to.name === 'subject')

/** Whether a section names a value of a business, replaced or not: then its calls need the values. */
export const namesValues = (section: TemplateSections): boolean => namedValues(section).size > 0

/**
 * Whether some place tells the service the business: its code, or a value of it. A text that is no template counts, because
 * its problem is reported already.
 */
export const namesBusiness = (backend: TemplateSections, own: TemplateSections = {}): boolean =>
  // No service is told where redirects may lead.
  textsOf({ ...backend, redirects: undefined }, { ...own, redirects: undefined }).some((text) => {
    const template = parseTemplate(text)
    return (
      typeof template === 'string' ||
      placeholdersIn(template).some(({ to, written }) => written === 'business' || to.kind === 'value')
    )
  })
