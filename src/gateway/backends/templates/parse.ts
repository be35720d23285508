/** The language of templates (C8.7): texts with placeholders, from which requests to an upstream are made. */
import { REFERRED_BEGINS } from '../../../base/config/schema.ts'
import {
  MASK,
  type Placeholder,
  type TemplateReference,
  type Template,
  type TemplatePart,
  type TemplateText,
} from '../../../base/contracts/calls/templates.ts'
import { parseJsonPointer, POINTER_PATTERN } from '../../../base/http/body/json.ts'

const NAME = '[A-Za-z][A-Za-z0-9_]*'

const TOKEN = new RegExp(
  `\\{\\0(?:[^{}]|\\{\\{|\\}\\})*\\}|\\{\\{|\\}\\}|\\{${NAME}(?:\\.\\.\\.|\\.[A-Za-z0-9_-]+|/[^{}]*)?\\}|[{}]|[^{}]+`,
  'g',
)
const DOUBLE: Readonly<Record<string, string>> = { '{{': '{', '}}': '}' }

/** Marks between which a text is quoted. */
const QUOTES = ["'", '"', '`'] as const

/** The text around a part of a template, as it is written. */
export interface Around {
  readonly before: string
  readonly behind: string
}

/**
 * Parses `member-{memberId}.json`. `{{` and `}}` stand for the braces themselves.
 * @param around the rest of the text of which this is a part
 * @returns what is wrong with it, if anything is
 */
export function parseTemplate(
  source: string,
  around: Around = { before: '', behind: '' },
): Template | string {
  const parts: TemplatePart[] = []
  for (const { 0: token, index } of source.matchAll(TOKEN)) {
    if (token === '{' || token === '}')
      return `has a "${token}" that belongs to no placeholder; expected {name}, or "${token}${token}" for the brace itself`
    const text = DOUBLE[token] ?? token
    const last = parts.at(-1)
    if (token.startsWith(REFERRED_BEGINS)) parts.push(referred(token))
    else if (text === token && token.startsWith('{')) {
      const written = token.slice(1, -1)
      const to = referenceOf(written)
      if (typeof to === 'string') return to
      const before = around.before + source.slice(0, index)
      const behind = source.slice(index + token.length) + around.behind
      parts.push({ kind: 'placeholder', written, to, quotes: quotesAround(before, behind) })
    } else if (last?.kind === 'text') parts.splice(-1, 1, { kind: 'text', text: last.text + text })
    else parts.push({ kind: 'text', text })
  }
  return parts
}

/** What stands for a reference: the whole text. */
const referred = (token: string): TemplatePart => ({
  kind: 'text',
  text: token.slice(REFERRED_BEGINS.length, -1).replaceAll(/\{\{|\}\}/g, (braces) => braces.charAt(0)),
  isSecret: true,
})

const POINTER = new RegExp(POINTER_PATTERN)

/** @returns what is wrong with it, if anything is */
function referenceOf(written: string): TemplateReference | string {
  const [, name = '', mark = '', rest = ''] = /^([A-Za-z0-9_]+)(\.\.\.|[./])?(.*)$/s.exec(written) ?? []
  if (mark === '...') return { kind: 'segments', name }
  if (mark === '.')
    return name === 'business'
      ? { kind: 'value', name: rest }
      : `has {${written}}; only {business.…} stands for a value by its name`
  if (name === 'body') {
    const pointer = mark === '/' ? `/${rest}` : ''
    return POINTER.test(pointer)
      ? { kind: 'body', pointer: parseJsonPointer(pointer) }
      : `has {${written}}, whose "${pointer}" is no JSON Pointer`
  }
  if (name === 'query') return { kind: 'query', name: rest }
  if (mark === '/') return `has {${written}}; only {body/…} and {query/…} stand for a part of something`
  return { kind: 'name', name }
}

const withoutPlaceholders = (source: string): string => source.replaceAll(/\{[^{}]*\}/g, '')

function quotesAround(before: string, behind: string): readonly string[] {
  const [head, tail] = [before, behind].map(withoutPlaceholders) as [string, string]
  let open: string | undefined
  for (const [mark] of head.matchAll(/['"`]/g))
    if (open === undefined) open = mark
    else if (open === mark) open = undefined
  if (open === undefined || !tail.includes(open)) return []
  return QUOTES.filter((mark) => head.includes(mark) && tail.includes(mark))
}

export const placeholdersIn = (template: Template): readonly Placeholder[] =>
  template.filter((part) => part.kind === 'placeholder')

/** The placeholders of a text. A text that is no template has none: the check of templates reports it. */
export function placeholdersInText(text: string): readonly Placeholder[] {
  const template = parseTemplate(text)
  return typeof template === 'string' ? [] : placeholdersIn(template)
}

/** The text without its placeholders. */
export const fixedText = (template: Template): string =>
  template.map((part) => (part.kind === 'text' ? part.text : '')).join('')

/** The placeholder that is all of the text; undefined if the text has anything else. */
export function solePlaceholder(template: Template): Placeholder | undefined {
  const [part, ...others] = template
  return part?.kind === 'placeholder' && others.length === 0 ? part : undefined
}

export const MASKED: TemplateText = Object.freeze({ kind: 'text', text: MASK, isSecret: true })

/** With `***` in place of what came from files and the environment, and of these values of the business (C14.1). */
export const masked = (template: Template, secrets: ReadonlySet<string>): Template =>
  template.map((part) => {
    if (part.kind === 'text') return part.isSecret === true ? MASKED : part
    return part.to.kind === 'value' && secrets.has(part.to.name) ? MASKED : part
  })
