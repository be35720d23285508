import type { Call } from '../../contracts/backend.ts'
import { compileQueryFilter, compileRefuseHidden, type RefuseHidden } from '../../http/query.ts'
import { solePlaceholder } from './path-template.ts'
import { checkValue, isPlain, percentEncode } from './segment-value.ts'
import { compilePlaceholder, type Template } from './template.ts'
import { compileText, type Text } from './text-template.ts'

export interface QueryTemplateRules {
  /** What is added, by name. */
  readonly query: ReadonlyMap<string, Template>
  /** Names of the only pairs of a client that pass; undefined: all but those that are added. */
  readonly queryOnly: readonly string[] | undefined
  /** Whether what a second decoding would change is refused. */
  readonly strictQuery: boolean
}

/**
 * Makes the query that is sent of the client's: both are empty, or begin with `?`.
 * @throws Fault `unsendable_value`, `unsendable_argument`
 */
export type QueryTemplate = (call: Call, query: string) => string

/** Undefined where the client's query goes on as it is. */
export function compileQueryTemplate(rules: QueryTemplateRules): QueryTemplate | undefined {
  const { query, queryOnly, strictQuery } = rules
  const taken = [...query.keys()]
  const filter = compileQueryFilter({ taken, only: queryOnly, strict: strictQuery })
  if (filter === undefined) return undefined
  const refuseHidden = compileRefuseHidden(taken)
  const pairs = [...query].map(([name, template]) => compilePair(name, template, refuseHidden))
  if (pairs.length === 0) return (_call, given) => filter(given)
  return (call, given) => {
    const passed = given === '' ? '' : filter(given)
    let sent = ''
    for (const pair of pairs) sent += typeof pair === 'string' ? pair : pair(call)
    return passed === '' || passed === '?' ? `?${sent.slice(1)}` : passed + sent
  }
}

/** A pair with its separator, or what makes it for each call. */
function compilePair(name: string, template: Template, refuseHidden: RefuseHidden): Text {
  const start = `&${percentEncode(name)}=`
  // A value may have a path parameter in it, which the client chose.
  const encoded = (value: string): string => {
    if (isPlain(value)) return value
    refuseHidden(value, 'value')
    return percentEncode(value)
  }
  const sole = solePlaceholder(template)
  if (sole !== undefined) {
    const find = compilePlaceholder(sole)
    return (call) => {
      const value = find(call)
      checkValue(value, sole.name)
      return start + encoded(value)
    }
  }
  const text = compileText(template)
  return typeof text === 'function' ? (call) => start + encoded(text(call)) : start + percentEncode(text)
}
