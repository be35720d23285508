import type { Call } from '../../contracts/backend.ts'
import { followedBy, headerLine, type HeaderText, NO_HEADERS } from '../../http/header-text.ts'
import { type Template, unsendable } from './template.ts'
import { type CheckValue, compileText } from './text-template.ts'

export interface FixedHeader {
  /** As the configuration spells it. */
  readonly written: string
  /** In lower case. */
  readonly name: string
  readonly template: Template
}

/** Headers of the configuration, by folded name: see `foldName`. */
export type FixedHeaders = ReadonlyMap<string, FixedHeader>

/** Writes the lines. @throws Fault `unsendable_value` */
export type FixedHeaderWriter = (call: Call) => HeaderText

const VISIBLE_ASCII = /^[!-~]+$/

/** There is no way to encode other characters that all upstreams would decode. */
const requireVisibleAscii: CheckValue = (value, name) => {
  if (!VISIBLE_ASCII.test(value)) throw unsendable(name, 'a header holds visible ASCII only')
}

/** Undefined where there are none. */
export function compileFixedHeaders(headers: FixedHeaders): FixedHeaderWriter | undefined {
  let same = NO_HEADERS
  const made: ((call: Call) => HeaderText)[] = []
  for (const { name, template } of headers.values()) {
    const text = compileText(template, requireVisibleAscii)
    if (typeof text === 'string') same = followedBy(same, headerLine(name, text))
    else made.push((call) => headerLine(name, text(call)))
  }
  if (same === NO_HEADERS && made.length === 0) return undefined
  return (call) => {
    let lines = same
    for (const make of made) lines = followedBy(lines, make(call))
    return lines
  }
}
