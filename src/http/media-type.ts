/**
 * The one reader of media types (RFC 9110 §8.3.1, §5.6): Accept, Content-Type and configured types all go through
 * it, so that no two of them can read the same bytes differently (T4.1).
 */
export interface MediaType {
  /** `type/subtype` in lower case. */
  readonly type: string
  /** In order; names in lower case, values without quotes, case kept. Repeats are kept: the caller judges them. */
  readonly parameters: readonly MediaParameter[]
}

export interface MediaParameter {
  readonly name: string
  readonly value: string
  readonly quoted: boolean
}

// Sticky and without overlapping alternatives: linear on any input.
const TYPE = /[ \t]*([!#$%&'*+.^_`|~\w-]+\/[!#$%&'*+.^_`|~\w-]+)/y
const PARAMETER =
  /[ \t]*;[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w-]+)|"((?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*)"))?/y
const TRAILING = /[ \t]*$/y

/** A media type or range with its parameters; undefined if malformed. Empty parameters (`a/b;`) are legal. */
export function parseMediaType(text: string): MediaType | undefined {
  TYPE.lastIndex = 0
  const type = TYPE.exec(text)?.[1]
  if (type === undefined) return undefined
  const parameters: MediaParameter[] = []
  let end = TYPE.lastIndex
  for (;;) {
    PARAMETER.lastIndex = end
    const match = PARAMETER.exec(text)
    if (match === null) break
    end = PARAMETER.lastIndex
    const [, name, token, quoted] = match
    if (name === undefined) continue
    const value = token ?? quoted?.replace(/\\(.)/gs, '$1') ?? ''
    parameters.push({ name: name.toLowerCase(), value, quoted: token === undefined })
  }
  TRAILING.lastIndex = end
  return TRAILING.test(text) ? { type: type.toLowerCase(), parameters } : undefined
}

/** Whether every charset that the parameters name is UTF-8, in any case (C7.2, C7.4). True if none is named. */
export const isUtf8 = ({ parameters }: MediaType): boolean =>
  parameters.every(({ name, value }) => name !== 'charset' || value.toLowerCase() === 'utf-8')

/** Whether `range` (`a/b`, `a/*` or `*\/*`) stands for all that `type` stands for. Both in lower case. */
export const covers = (range: string, type: string): boolean =>
  range === type || range === '*/*' || (range.endsWith('/*') && type.startsWith(range.slice(0, -1)))

/** The members of a comma-separated list (RFC 9110 §5.6.1), empty ones left out; a comma within quotes divides nothing. */
export function splitList(list: string): readonly string[] {
  const members: string[] = []
  let start = 0
  let quoted = false
  for (let at = 0; at < list.length; at++) {
    const char = list[at]
    if (quoted && char === '\\') at++
    else if (char === '"') quoted = !quoted
    else if (char === ',' && !quoted) {
      members.push(list.slice(start, at))
      start = at + 1
    }
  }
  members.push(list.slice(start))
  return members.filter((member) => /[^ \t]/.test(member))
}

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
    matches: isUtf8(media),
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
