/** Texts with placeholders, of which parts of upstream requests are made (C8.7). */
import type { Call } from '../../contracts/backend.ts'
import { decodeSegment } from '../../http/request-target.ts'
import { Fault } from '../../kernel/faults.ts'

export interface Placeholder {
  readonly kind: 'placeholder'
  readonly name: string
  /** The quotation marks that stand both before and behind it. */
  readonly quotes: readonly string[]
}

export type TemplatePart = { readonly kind: 'text'; readonly text: string } | Placeholder

/** A parsed text: no two parts of kind text stand side by side. */
export type Template = readonly TemplatePart[]

const TOKEN = /\{\{|\}\}|\{[A-Za-z][A-Za-z0-9_]*\}|[{}]|[^{}]+/g
const DOUBLE: Readonly<Record<string, string>> = { '{{': '{', '}}': '}' }

const QUOTES = ["'", '"', '`'] as const

/**
 * Parses `member-{memberId}.json`. `{{` and `}}` stand for the braces themselves.
 * @param around the rest of the text of which this is a part
 * @returns what is wrong with it, if anything is
 */
export function parseTemplate(source: string, around = { before: '', behind: '' }): Template | string {
  const parts: TemplatePart[] = []
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    if (token === '{' || token === '}')
      return `has a "${token}" that belongs to no placeholder; expected {name}, or "${token}${token}" for the brace itself`
    const text = DOUBLE[token] ?? token
    const last = parts.at(-1)
    if (text === token && token.startsWith('{')) {
      const before = around.before + source.slice(0, index)
      const behind = source.slice(index) + around.behind
      const quotes = QUOTES.filter((mark) => before.includes(mark) && behind.includes(mark))
      parts.push({ kind: 'placeholder', name: token.slice(1, -1), quotes })
    } else if (last?.kind === 'text') parts.splice(-1, 1, { kind: 'text', text: last.text + text })
    else parts.push({ kind: 'text', text })
  }
  return parts
}

/** The names of a template's placeholders, each once. */
export const placeholdersOf = (template: Template): readonly string[] => [
  ...new Set(template.flatMap((part) => (part.kind === 'placeholder' ? [part.name] : []))),
]

/** Index of the action's first segment in `/api/{version}/b/{business}/{area}/…` and `/api/{version}/f/{business}/{fund}/{area}/…`. */
const ACTION_AT = { business: 5, fund: 6 } as const

/** The segments of the action, in canonical form: parameters as the client gave them. */
export const actionSegments = ({ target, action }: Pick<Call, 'target' | 'action'>): readonly string[] =>
  target.segments.slice(ACTION_AT[action.level])

/** What the built-in placeholders stand for, decoded. */
export const BUILT_IN: Readonly<Record<string, (call: Call) => string | undefined>> = {
  business: ({ business }) => business,
  fund: ({ fund }) => fund,
  subject: ({ principal }) => principal?.subject,
  client: ({ principal }) => principal?.client,
  issuer: ({ principal }) => principal?.issuerName,
  area: ({ action }) => action.area,
  action: (call) => actionSegments(call).map(decodeSegment).join('/'),
  version: ({ target }) => target.segments[1],
  actionVersion: ({ version }) => String(version),
}

export const isBuiltIn = (name: string): boolean => Object.hasOwn(BUILT_IN, name)

/** The fault of a value that is never sent (C8.7). @param why for the log; holds nothing of the value */
export const unsendable = (name: string, why: string): Fault =>
  new Fault('unsendable_value', { detail: `{${name}} cannot be sent: ${why}`, unchanged: true })

/**
 * Throws Fault `unsendable_argument` for a value that could end the quotation in which it stands. Services also read other
 * forms of a mark as the mark (NFKC).
 */
export function checkQuoted(value: string, { name, quotes }: Placeholder): void {
  if (quotes.length === 0) return
  const read = value.normalize('NFKC')
  if (read.includes('\\') || quotes.some((mark) => read.includes(mark)))
    throw new Fault('unsendable_argument', {
      say: `What stands for ${name} holds a quotation mark or a backslash. Leave it out.`,
    })
}

/** Finds what a placeholder stands for in a call: of a built-in name, or of one of the action's path parameters. */
export function compilePlaceholder(placeholder: Placeholder): (call: Call) => string {
  const { name } = placeholder
  const find = isBuiltIn(name)
    ? BUILT_IN[name]
    : ({ params }: Call) => (Object.hasOwn(params, name) ? params[name] : undefined)
  return (call) => {
    const value = find?.(call)
    if (value === undefined || value === '') throw unsendable(name, 'this call has no such value')
    checkQuoted(value, placeholder)
    return value
  }
}
