import { didYouMean } from '../../../base/config/problem-text.ts'
import type { KeyPath, Problems } from '../../../base/config/problems.ts'
import { type BodySchema, forbids, requires } from '../../../base/http/body/body-schema.ts'
import type { ScalarValue } from '../../../base/http/body/json.ts'
import type { Placeholder, Template } from '../../../base/contracts/calls/templates.ts'
import { parseTemplate, placeholdersIn, solePlaceholder } from './parse.ts'
import { compilePathTemplate, holdsEscape, type PathTemplate } from './places.ts'
import { BUILT_IN, isBuiltIn } from './sources.ts'

/** What an operation says of its clients' bodies. */
export type ClientsBody =
  | { readonly kind: 'none' }
  /** It passes unread (C7.1). */
  | { readonly kind: 'streamed' }
  | {
      readonly kind: 'read'
      readonly required: boolean
      /** Undefined: any. */
      readonly schema: BodySchema | undefined
    }

/** What is known of the calls of an action when the configuration is loaded. */
export interface CallShape {
  /** For messages: `fund-data/fund-list`. */
  readonly described: string
  readonly level: 'business' | 'fund'
  readonly parameters: readonly string[]
  /** The name of its rest parameter (C3.3), which is among them. */
  readonly rest?: string | undefined
  /** Whether the action may have more than one segment. */
  readonly isNested: boolean
  /** Whether calls without a verified caller are forwarded too. */
  readonly reportOnly: boolean
  /** Undefined: none. */
  readonly body?: ClientsBody | undefined
  /** Declared parameters of the query (C4.11). */
  readonly query?: readonly DeclaredParameter[] | undefined
  /** Whether tokens of several issuers are accepted (C11.2), so that `{issuer}` has a value. */
  readonly severalIssuers?: boolean
}

interface DeclaredParameter {
  readonly name: string
  readonly required: boolean
  readonly default: ScalarValue | undefined
}

/** How an absent value is treated in the place of a placeholder (C8.7). */
type Where =
  /** A whole segment of a path. */
  | 'segment'
  /** A part of a path, a query, a header, or of a text. */
  | 'text'
  /** A leaf of a body's template: it is left out. */
  | 'leaf'
  /** `set`, `require`, `auth`, `host`, `target`: it is never left out. */
  | 'certain'

interface UsedPlaceholder {
  readonly placeholder: Placeholder
  readonly where: Where
}

export interface UsedTemplate {
  readonly at: KeyPath
  readonly used: readonly UsedPlaceholder[]
  /** Whether the template is the backend's, and so one for calls of both levels. */
  readonly isShared: boolean
}

export const usedPath = ({ segments }: PathTemplate, at: KeyPath, isShared: boolean): UsedTemplate => ({
  at,
  used: segments.flatMap((segment) => usedIn(segment, solePlaceholder(segment) ? 'segment' : 'text')),
  isShared,
})

/** @param where `certain` for a text that is never left out */
export const usedText = (
  template: Template,
  at: KeyPath,
  isShared: boolean,
  where: 'text' | 'certain' = 'text',
): UsedTemplate => ({ at, used: usedIn(template, where), isShared })

export const usedIn = (template: Template, where: Where): readonly UsedPlaceholder[] =>
  placeholdersIn(template).map((placeholder) => ({ placeholder, where }))

interface Use extends UsedPlaceholder {
  readonly isShared: boolean
}

interface Rule {
  readonly isBroken: (use: Use, calls: CallShape) => boolean
  readonly message: (use: Use, calls: CallShape) => string
  readonly hint?: (use: Use, calls: CallShape) => string | undefined
}

const NO_BODY: ClientsBody = { kind: 'none' }

const CALLER: ReadonlySet<string> = new Set(['subject', 'client', 'issuer'])

/** Placeholders for something that was checked. They have no value where nothing is refused. */
const OF_CHECKED: ReadonlySet<string> = new Set(['body', 'query'])

const namesFor = ({ parameters, rest }: CallShape): readonly string[] => [
  ...Object.keys(BUILT_IN),
  ...parameters.map((name) => (name === rest ? `${name}...` : name)),
]

const listed = (names: readonly string[]): string => names.map((name) => `{${name}}`).join(', ')

const isName = ({ placeholder: { to, written } }: Use, name: string): boolean =>
  to.kind === 'name' && written === name

/** `body` of `{body/Note}`. */
const firstName = ({ placeholder: { written } }: Use): string => /^[A-Za-z0-9_]*/.exec(written)?.[0] ?? ''

const isKnown = ({ placeholder: { to } }: Use, { parameters, rest }: CallShape): boolean =>
  (to.kind === 'name' && (isBuiltIn(to.name) || (parameters.includes(to.name) && to.name !== rest))) ||
  (to.kind === 'segments' && to.name === rest) ||
  to.kind === 'value' ||
  to.kind === 'body' ||
  to.kind === 'query'

const declared = ({ placeholder: { to } }: Use, { query }: CallShape): DeclaredParameter | undefined =>
  to.kind === 'query' ? query?.find(({ name }) => name === to.name) : undefined

/** Whether every call that passes its checks has a value of the client's for the placeholder. */
function isCertain(use: Use, calls: CallShape): boolean {
  const { to } = use.placeholder
  if (to.kind === 'query') {
    const parameter = declared(use, calls)
    return parameter?.required === true || parameter?.default !== undefined
  }
  if (to.kind !== 'body') return true
  const { body } = calls
  return body?.kind === 'read' && body.required && requires(body.schema, to.pointer)
}

/** The first one that is broken is reported. */
const RULES: readonly Rule[] = [
  {
    isBroken: (use, calls) => !isKnown(use, calls),
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, which ${described} does not have`,
    hint: ({ placeholder: { written } }, calls) =>
      didYouMean(written, namesFor(calls)) ?? `there are ${listed(namesFor(calls))}`,
  },
  {
    isBroken: (use, { parameters }) =>
      (isBuiltIn(firstName(use)) || OF_CHECKED.has(firstName(use))) && parameters.includes(firstName(use)),
    message: (use, { described }) =>
      `has {${use.placeholder.written}}, and {${firstName(use)}} is also a path parameter of ${described}: it could mean either`,
    hint: () => 'rename the parameter',
  },
  {
    isBroken: ({ placeholder: { to } }, { body }) => to.kind === 'body' && body?.kind === 'streamed',
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, and ${described} streams its body by \`consumes\`, unread`,
  },
  {
    isBroken: ({ placeholder: { to } }, { body, reportOnly }) =>
      to.kind === 'body' && (body ?? NO_BODY).kind === 'none' && !reportOnly,
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, and ${described} takes no body`,
    hint: () => 'give the operation a `body` with a `schema`',
  },
  {
    isBroken: ({ placeholder: { to } }, { body }) =>
      to.kind === 'body' && body?.kind === 'read' && forbids(body.schema, to.pointer),
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, which the \`schema\` of the body of ${described} does not allow`,
    hint: () => 'name the member in `properties`',
  },
  {
    isBroken: (use, { level }) =>
      isName(use, 'fund') && level === 'business' && !(use.where === 'segment' && use.isShared),
    message: (_use, { described }) => `has {fund}, and ${described} may be called without one`,
  },
  {
    isBroken: (use, { isNested }) => isName(use, 'action') && isNested && use.where === 'text',
    message: (_use, { described }) =>
      `has {action} as a part of a text, and ${described} may have several segments`,
    hint: () => 'let {action} be a whole segment of `path`, or name its parameters',
  },
  {
    isBroken: ({ placeholder: { to }, where }) => to.kind === 'segments' && where === 'text',
    message: ({ placeholder: { written } }) =>
      `has {${written}} as a part of a text, and it is several segments`,
    hint: () => 'let it be a whole segment of `path`',
  },
  {
    isBroken: ({ placeholder: { to } }, { reportOnly }) =>
      to.kind === 'name' && CALLER.has(to.name) && reportOnly,
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, and ${described} is in a report-only area, where there may be no caller`,
  },
  {
    isBroken: ({ placeholder: { to } }, { reportOnly }) => OF_CHECKED.has(to.kind) && reportOnly,
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, and ${described} is in a report-only area, where nothing of a call was checked`,
  },
  {
    isBroken: (use, calls) => use.placeholder.to.kind === 'query' && declared(use, calls) === undefined,
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, and ${described} declares no such parameter`,
    hint: ({ placeholder: { to } }, { query = [] }) => {
      const names = query.map(({ name }) => name)
      const near = to.kind === 'query' ? didYouMean(to.name, names) : undefined
      return near ?? (names.length === 0 ? 'declare it in `parameters`' : `there are ${names.join(', ')}`)
    },
  },
  {
    isBroken: (use, calls) => use.where !== 'leaf' && !isCertain(use, calls),
    message: ({ placeholder: { written } }, { described }) =>
      `has {${written}}, which a call of ${described} may lack`,
    hint: ({ placeholder: { to } }) =>
      to.kind === 'query'
        ? 'give the parameter `required: true` or a `default`'
        : 'let `body.schema` require it: each object on the way has `type: object` and `required`',
  },
  {
    isBroken: (use, { severalIssuers }) => isName(use, 'issuer') && severalIssuers !== true,
    message: () => 'has {issuer}, which is the name of one of several issuers, and there are not several',
  },
]

/** The strictest first. */
const STRICTNESS: readonly Where[] = ['text', 'certain', 'segment', 'leaf']

/** Reports placeholders that calls of this shape have no value for. For a shared template, only the first of all. */
export function checkTemplates(
  templates: readonly UsedTemplate[],
  calls: CallShape,
  problems: Problems,
): void {
  for (const { at, used, isShared } of templates) {
    if (isShared && hasProblem(problems, at)) continue
    for (const [written, places] of Map.groupBy(used, ({ placeholder }) => placeholder.written)) {
      const [strictest] = places.toSorted((a, b) => STRICTNESS.indexOf(a.where) - STRICTNESS.indexOf(b.where))
      if (strictest === undefined) throw new Error(`no use of {${written}}`)
      const use = { ...strictest, isShared }
      const rule = RULES.find(({ isBroken }) => isBroken(use, calls))
      if (rule) problems.error(at, rule.message(use, calls), rule.hint?.(use, calls))
    }
  }
}

const hasProblem = ({ list: problems }: Problems, at: KeyPath): boolean =>
  problems.some(({ path }) => path.length === at.length && path.every((key, index) => key === at[index]))

/** Undefined where a problem was reported. */
export function compilePath(source: string, at: KeyPath, problems: Problems): PathTemplate | undefined {
  const compiled = compilePathTemplate(source)
  if (typeof compiled !== 'string') return compiled
  problems.error(at, compiled)
  return undefined
}

/** A template's problems are reported; it stands for an empty text then. */
export function parseOrReport(source: string, at: KeyPath, problems: Problems): Template {
  const template = parseTemplate(source)
  if (typeof template !== 'string') return template
  problems.error(at, template)
  return []
}

/** The same for a text that is encoded where it has to be. */
export function compileText(source: string, at: KeyPath, problems: Problems): Template {
  const template = parseOrReport(source, at, problems)
  const isMade = placeholdersIn(template).length > 0
  if (isMade && template.some((part) => part.kind === 'text' && holdsEscape(part.text)))
    problems.error(at, 'holds an escape such as %20; write the text itself, it is encoded where it has to be')
  return template
}
