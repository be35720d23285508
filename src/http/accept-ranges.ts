import { parseMediaType, speaksUtf8, splitList } from './media-type.ts'

/** One readable member of Accept (RFC 9110 §12.5.1). */
export interface AcceptRange {
  /** In lower case: `a/b`, `a/*` or any. */
  readonly type: string
  /** 0 to 1; 0 excludes. */
  readonly q: number
  /** 2 for a type, 1 for `a/*`, 0 for any. */
  readonly specificity: 0 | 1 | 2
  /** Its place in the client's order. */
  readonly order: number
  /** False if it asks for a charset other than UTF-8: then it names a type, but matches nothing (C7.2). */
  readonly matches: boolean
}

const QVALUE = /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/

const specificityOf = (type: string): AcceptRange['specificity'] => {
  if (type === '*/*') return 0
  return type.endsWith('/*') ? 1 : 2
}

function parseRange(member: string, order: number): AcceptRange | undefined {
  const media = parseMediaType(member)
  if (media === undefined) return undefined
  const [weight, second] = media.parameters.filter(({ name }) => name === 'q')
  if (second !== undefined) return undefined
  if (weight !== undefined && (weight.quoted || !QVALUE.test(weight.value))) return undefined
  return {
    type: media.type,
    q: Number(weight?.value ?? 1),
    specificity: specificityOf(media.type),
    order,
    matches: speaksUtf8(media),
  }
}

/**
 * The ranges of Accept in the client's order, malformed members left out. Undefined where the client states no
 * preference: no header, or one without members. Each line is split by itself, so that an unclosed quote in one
 * cannot swallow the next.
 */
export function parseAccept(lines: readonly string[]): readonly AcceptRange[] | undefined {
  const members = lines.flatMap(splitList)
  if (members.length === 0) return undefined
  return members.map(parseRange).filter((range) => range !== undefined)
}

/** By q, then specificity, then the client's order (C7.2). For Array.sort. */
export const byPreference = (a: AcceptRange, b: AcceptRange): number =>
  b.q - a.q || b.specificity - a.specificity || a.order - b.order

/**
 * The range that says how welcome one type is, of those that stand for it: the most specific one (RFC 9110
 * §12.5.1); of equally specific ones an exclusion, else the most preferred. Undefined: not acceptable.
 */
export function decisiveRange(standing: readonly AcceptRange[]): AcceptRange | undefined {
  let found: AcceptRange | undefined
  for (const range of standing) {
    const closer = range.specificity - (found?.specificity ?? -1)
    const wins = found === undefined || closer > 0 || (closer === 0 && found.q > 0 && outranks(range, found))
    if (wins) found = range
  }
  return found !== undefined && found.q > 0 ? found : undefined
}

const outranks = (range: AcceptRange, other: AcceptRange): boolean => range.q === 0 || range.q > other.q
