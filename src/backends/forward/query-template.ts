import type { Call } from '../../contracts/backend.ts'
import { compileQueryFilter } from '../../http/query.ts'
import { soleName } from './path-template.ts'
import { encodeSegment, percentEncode } from './segment-value.ts'
import { compilePlaceholder, type Template } from './template.ts'
import { compileText, type Text } from './text-template.ts'

export interface QueryTemplateRules {
  /** What is added, by name. */
  readonly query: ReadonlyMap<string, Template>
  /** Names of the only pairs of a client that pass; undefined: all but those that are added. */
  readonly queryOnly: readonly string[] | undefined
}

/** Makes the query that is sent of the client's: both are empty, or begin with `?`. @throws Fault `unsendable_value` */
export type QueryTemplate = (call: Call, query: string) => string

/** Undefined where the client's query goes on as it is. */
export function compileQueryTemplate({ query, queryOnly }: QueryTemplateRules): QueryTemplate | undefined {
  const filter = compileQueryFilter({ taken: [...query.keys()], only: queryOnly })
  if (filter === undefined) return undefined
  const pairs = [...query].map(([name, template]) => compilePair(name, template))
  if (pairs.length === 0) return (_call, given) => filter(given)
  return (call, given) => {
    const passed = given === '' ? '' : filter(given)
    let sent = ''
    for (const pair of pairs) sent += typeof pair === 'string' ? pair : pair(call)
    return passed === '' || passed === '?' ? `?${sent.slice(1)}` : passed + sent
  }
}

/** A pair with its separator, or what makes it for each call. */
function compilePair(name: string, template: Template): Text {
  const start = `&${percentEncode(name)}=`
  const sole = soleName(template)
  if (sole !== undefined) {
    const find = compilePlaceholder(sole)
    return (call) => start + encodeSegment(find(call), sole)
  }
  const value = compileText(template)
  if (typeof value === 'function') return (call) => start + percentEncode(value(call))
  return start + percentEncode(value)
}
