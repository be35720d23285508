import { didYouMean } from '../../config/problem-text.ts'
import type { KeyPath, Problems } from '../../config/problems.ts'
import {
  BUILT_IN,
  compilePathTemplate,
  holdsEscape,
  isBuiltIn,
  parseTemplate,
  type PathTemplate,
  placeholdersOf,
  soleName,
  type Template,
} from '../template.ts'

/** What is known of the calls of an action when the configuration is loaded. */
export interface CallShape {
  /** For messages: `fund-data/fund-list`. */
  readonly described: string
  readonly level: 'business' | 'fund'
  readonly parameters: readonly string[]
  /** Whether the action may have more than one segment. */
  readonly isNested: boolean
  /** Whether calls without a verified caller are forwarded too. */
  readonly reportOnly: boolean
  /** Whether tokens of several issuers are accepted (C11.2), so that `{issuer}` stands for something. */
  readonly severalIssuers?: boolean
}

export interface UsedTemplate {
  readonly at: KeyPath
  /** Placeholders that are a whole segment of a path, and those that stand elsewhere. */
  readonly whole: readonly string[]
  readonly inner: readonly string[]
  /** Whether the template is the backend's, and so one for calls of both levels. */
  readonly isShared: boolean
}

export function usedPath({ segments }: PathTemplate, at: KeyPath, isShared: boolean): UsedTemplate {
  const names = segments.map(soleName)
  const whole = names.filter((name) => name !== undefined)
  const inner = placeholdersOf(segments.filter((_, index) => names[index] === undefined).flat())
  return { at, whole, inner, isShared }
}

export const usedText = (template: Template, at: KeyPath, isShared: boolean): UsedTemplate => ({
  at,
  whole: [],
  inner: placeholdersOf(template),
  isShared,
})

interface Use {
  readonly name: string
  readonly isWhole: boolean
  readonly isShared: boolean
}

interface Rule {
  readonly isBroken: (use: Use, calls: CallShape) => boolean
  readonly message: (use: Use, calls: CallShape) => string
  readonly hint?: (use: Use, calls: CallShape) => string | undefined
}

const CALLER: ReadonlySet<string> = new Set(['subject', 'client', 'issuer'])

const namesFor = ({ parameters }: CallShape): readonly string[] => [...Object.keys(BUILT_IN), ...parameters]

const listed = (names: readonly string[]): string => names.map((name) => `{${name}}`).join(', ')

/** The first one that is broken is reported. */
const RULES: readonly Rule[] = [
  {
    isBroken: ({ name }, { parameters }) => !isBuiltIn(name) && !parameters.includes(name),
    message: ({ name }, { described }) => `has {${name}}, which ${described} does not have`,
    hint: ({ name }, calls) => didYouMean(name, namesFor(calls)) ?? `there are ${listed(namesFor(calls))}`,
  },
  {
    isBroken: ({ name }, { parameters }) => isBuiltIn(name) && parameters.includes(name),
    message: ({ name }, { described }) =>
      `has {${name}}, which is also a path parameter of ${described}: it could mean either`,
    hint: () => 'rename the parameter',
  },
  {
    isBroken: ({ name, isWhole, isShared }, { level }) =>
      name === 'fund' && level === 'business' && !(isWhole && isShared),
    message: (_use, { described }) => `has {fund}, and ${described} may be called without one`,
  },
  {
    isBroken: ({ name, isWhole }, { isNested }) => name === 'action' && isNested && !isWhole,
    message: (_use, { described }) =>
      `has {action} as a part of a text, and ${described} may have several segments`,
    hint: () => 'let {action} be a whole segment of `path`, or name its parameters',
  },
  {
    isBroken: ({ name }, { reportOnly }) => CALLER.has(name) && reportOnly,
    message: ({ name }, { described }) =>
      `has {${name}}, and ${described} is in a report-only area, where there may be no caller`,
  },
  {
    isBroken: ({ name }, { severalIssuers }) => name === 'issuer' && severalIssuers !== true,
    message: () => 'has {issuer}, which is the name of one of several issuers, and there are not several',
  },
]

/** Reports placeholders that calls of this shape have no value for. Of a shared template, only the first of all. */
export function checkTemplates(
  templates: readonly UsedTemplate[],
  calls: CallShape,
  problems: Problems,
): void {
  for (const { at, whole, inner, isShared } of templates) {
    if (isShared && hasProblem(problems, at)) continue
    for (const name of new Set([...inner, ...whole])) {
      const use = { name, isWhole: !inner.includes(name), isShared }
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
export function compileText(source: string, at: KeyPath, problems: Problems): Template {
  const template = parseTemplate(source)
  if (typeof template === 'string') {
    problems.error(at, template)
    return []
  }
  const isMade = placeholdersOf(template).length > 0
  if (isMade && template.some((part) => part.kind === 'text' && holdsEscape(part.text)))
    problems.error(at, 'holds an escape such as %20; write the text itself, it is encoded where it has to be')
  return template
}
