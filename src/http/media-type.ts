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
export const speaksUtf8 = ({ parameters }: MediaType): boolean =>
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
