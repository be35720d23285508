import { Fault } from '../../kernel/faults.ts'
import {
  beforeSign,
  byReading,
  compileFindHidden,
  decodeQueryText,
  isSeparator,
  readingsOf,
  readingsOfSent,
} from './query.ts'

/**
 * Reads declared parameters of a query, decoded once.
 * @param query empty, or beginning with `?`
 * @throws Fault `query_invalid` where a service could read another value of one than the one that is read here
 */
type ReadParameters = (query: string) => ReadonlyMap<string, string>

export const refuseParameter = (name: string, why: string): Fault =>
  new Fault('query_invalid', { say: `Parameter ${name}: ${why}.` })

const NONE: ReadonlyMap<string, string> = new Map()

/**
 * A pair is a declared one if its name, decoded once, is the declared name in this very case. Any other spelling that a
 * service may take for it (C8.7) is refused: it would be a value that nobody has checked.
 * @param names decoded; `sameParameter` of no two of them
 */
export function compileReadParameters(names: readonly string[]): ReadParameters {
  const declared = new Set(names)
  const nameOf = byReading(names)
  const findHidden = compileFindHidden(names)

  const refuseOther = (pair: string): void => {
    const readings = readingsOfSent(beforeSign(pair))
    if (readings === undefined)
      throw new Fault('query_invalid', { say: 'The name of a parameter cannot be decoded.' })
    const read = readings.map((reading) => nameOf.get(reading)).find((name) => name !== undefined)
    const meant = read ?? (pair.includes('%') ? findHidden(pair, 'pair') : undefined)
    if (meant !== undefined)
      throw refuseParameter(meant, 'must be sent once, by this name as it is spelled here')
  }

  const valueOf = (name: string, sent: string): string => {
    const value = decodeQueryText(sent)
    if (value === undefined) throw refuseParameter(name, 'has a value that cannot be decoded')
    const hidden = sent.includes('%') ? findHidden(sent, 'value') : undefined
    if (hidden !== undefined) throw refuseParameter(hidden, `stands, encoded, in the value of ${name}`)
    return value
  }

  return (query) => {
    if (query === '') return NONE
    const found = new Map<string, string>()
    for (let start = 1, end = 0; start <= query.length; start = end + 1) {
      for (end = start; end < query.length && !isSeparator(query, end);) end += 1
      const pair = query.slice(start, end)
      const sent = beforeSign(pair)
      const name = decodeQueryText(sent)
      if (name === undefined || !declared.has(name)) {
        refuseOther(pair)
        continue
      }
      // A service that splits at "&" only reads another value, or no value.
      if (query[start - 1] === ';' || query[end] === ';')
        throw refuseParameter(
          name,
          'has a ";" in its value or beside it. Encode it as %3B, and separate by "&"',
        )
      if (found.has(name)) throw refuseParameter(name, 'stands more than once')
      found.set(name, valueOf(name, pair.slice(sent.length + 1)))
    }
    return found
  }
}

const squashed = (name: string): string => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')

/** Two names of one object (`page[size]`, `page[number]`) are read alike up to their bracket, and are not the same. */
const isNested = (name: string): boolean => /[[.]/.test(name)

/** Whether some service may take one of two names for the other. */
export function sameParameter(one: string, other: string): boolean {
  if (isNested(one) && isNested(other)) return squashed(one) === squashed(other)
  const readings = readingsOf(one)
  return readingsOf(other).some((reading) => readings.includes(reading))
}
