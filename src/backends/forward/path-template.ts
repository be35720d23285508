import type { Call } from '../../contracts/backend.ts'
import { checkSegment, encodeSegment } from './segment-value.ts'
import {
  actionSegments,
  BUILT_IN,
  checkQuoted,
  compilePlaceholder,
  parseTemplate,
  type Placeholder,
  placeholdersOf,
  type Template,
} from './template.ts'

/** The path that a call is sent to, in place of the client's (C8.7). */
export interface PathTemplate {
  /**
   * Between the slashes; the last one is empty if the path ends in a slash. `{action}` alone stands for all segments of
   * the action, and `{fund}` alone for none in a call at business level.
   */
  readonly segments: readonly Template[]
  /** The names of its placeholders. */
  readonly placeholders: readonly string[]
  /** @throws Fault `unsendable_value` */
  readonly render: (call: Call) => string
}

/** Unreserved characters and few others: nothing that any upstream reads as something else. */
const LITERAL = /^[A-Za-z0-9._~!$&'()*+,=:@-]*$/

/**
 * Compiles `/companies/{business}/members/{memberId}.json`.
 * @returns what is wrong with it, if anything is
 */
export function compilePathTemplate(source: string): PathTemplate | string {
  if (!source.startsWith('/')) return 'must begin with "/"'
  const texts = source.slice(1).split('/')
  const segments: Template[] = []
  let end = 0
  for (const [index, text] of texts.entries()) {
    const start = end + 1
    end = start + text.length
    const around = { before: source.slice(0, start), behind: source.slice(end) }
    const segment = parseSegment(text, index === texts.length - 1, around)
    if (typeof segment === 'string') return segment
    segments.push(segment)
  }
  const parts = joinTexts(segments.map(compileSegment))
  return {
    segments,
    placeholders: placeholdersOf(segments.flat()),
    render: (call) => {
      let path = ''
      for (const part of parts) path += typeof part === 'string' ? part : part(call)
      return path === '' ? '/' : path
    },
  }
}

/** One text in place of several that follow each other. */
function joinTexts(renderers: readonly SegmentRenderer[]): readonly SegmentRenderer[] {
  const joined: SegmentRenderer[] = []
  for (const each of renderers) {
    const last = joined.at(-1)
    if (typeof each === 'string' && typeof last === 'string') joined.splice(-1, 1, last + each)
    else joined.push(each)
  }
  return joined
}

function parseSegment(
  text: string,
  isLast: boolean,
  around: { readonly before: string; readonly behind: string },
): Template | string {
  if (text === '' && !isLast) return 'has an empty segment'
  if (text === '.' || text === '..') return 'has a segment of dots'
  const segment = parseTemplate(text, around)
  if (typeof segment === 'string') return segment
  const isPlain = segment.every((part) => part.kind === 'placeholder' || LITERAL.test(part.text))
  return isPlain
    ? segment
    : 'has characters that may not stand in a path as they are; a query goes into `query`'
}

/** The placeholder that a segment is, if it is nothing but one. */
export const solePlaceholder = (segment: Template): Placeholder | undefined => {
  const [part, ...others] = segment
  return part?.kind === 'placeholder' && others.length === 0 ? part : undefined
}

export const soleName = (segment: Template): string | undefined => solePlaceholder(segment)?.name

/** A segment with the slash before it, or what makes it for each call. */
type SegmentRenderer = string | ((call: Call) => string)

const WHOLE: Readonly<Record<string, (call: Call) => string>> = {
  action: (call) => actionSegments(call).reduce((path, segment) => `${path}/${segment}`, ''),
  fund: ({ fund }) => (fund === undefined ? '' : `/${encodeSegment(fund, 'fund')}`),
}

function compileSegment(segment: Template): SegmentRenderer {
  const sole = solePlaceholder(segment)
  if (sole === undefined) return compileMixed(segment)
  const { name } = sole
  const whole = Object.hasOwn(WHOLE, name) ? WHOLE[name] : undefined
  if (whole)
    return (call) => {
      checkQuoted(BUILT_IN[name]?.(call) ?? '', sole)
      return whole(call)
    }
  const value = compilePlaceholder(sole)
  return (call) => `/${encodeSegment(value(call), name)}`
}

/** Text alone, or text and placeholders. */
function compileMixed(segment: Template): SegmentRenderer {
  const [blamed] = placeholdersOf(segment)
  if (blamed === undefined)
    return `/${segment.map((part) => (part.kind === 'text' ? part.text : '')).join('')}`
  const parts = segment.map((part) => {
    if (part.kind === 'text') return part.text
    const value = compilePlaceholder(part)
    return (call: Call) => encodeSegment(value(call), part.name)
  })
  return (call) => {
    let text = ''
    for (const part of parts) text += typeof part === 'string' ? part : part(call)
    return `/${checkSegment(text, blamed)}`
  }
}
