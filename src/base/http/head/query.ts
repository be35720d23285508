import { Buffer } from 'node:buffer'
import { Fault } from '../../kernel/faults.ts'
import { caseless, SKIPPED } from '../names/fold.ts'
import { WantedNames } from '../names/like-names.ts'

/** Characters of names that can be read in one way only. */
const PLAIN = /^[A-Za-z0-9_-]*$/
/** One decoding; undefined where that cannot be done. */
export function decodeQueryText(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** Before the first letter: brackets and dots of nested values, and `?`, which parsers of whole queries take for its start. */
const FIRST_NAME = /^[[\].?]*([^[\].]*)/

/**
 * What a decoded name is read as, without regard to case: up to its first `[` or `.`, behind which nested values are
 * named; as PHP spells it, with `_` for these and for spaces; and up to its first NUL, where PHP ends it.
 */
export function readingsOf(name: string): readonly string[] {
  if (PLAIN.test(name)) return [caseless(name)]
  const whole = caseless(name.replaceAll(SKIPPED, ''))
  const [, upToNested = ''] = FIRST_NAME.exec(whole) ?? []
  const asVariable = caseless(name.trim()).replaceAll(/[\s.[]/g, '_')
  const end = name.indexOf('\0')
  return end < 0 ? [upToNested, asVariable] : [upToNested, asVariable, ...readingsOf(name.slice(0, end))]
}

/** All readings of a name as sent, decoded once and twice. Undefined where it cannot be decoded. */
export function readingsOfSent(sent: string): readonly string[] | undefined {
  if (PLAIN.test(sent)) return [caseless(sent)]
  const once = decodeQueryText(sent)
  const twice = once === undefined ? undefined : decodeQueryText(once)
  if (once === undefined || twice === undefined) return undefined
  return once === twice ? readingsOf(once) : [...readingsOf(once), ...readingsOf(twice)]
}

/** How many decodings, one after the other, some service may do. */
const MOST_DECODINGS = 3
/** Escaped bytes, and the escape of one UTF-16 unit that IIS decodes. */
const ESCAPES = /(?:%[0-9A-Fa-f]{2})+|%[Uu][0-9A-Fa-f]{4}/g

function unescaped(escapes: string): string {
  if (/^%[Uu]/.test(escapes)) return String.fromCharCode(Number.parseInt(escapes.slice(2), 16))
  const code = escapes.length === 3 ? Number.parseInt(escapes.slice(1), 16) : 0x80
  return code < 0x80 ? String.fromCharCode(code) : Buffer.from(escapes.replaceAll('%', ''), 'hex').toString()
}

/** One decoding, as a lenient service does it: what is no escape stays. */
function decodedOnce(text: string): string {
  const spaced = text.replaceAll('+', ' ')
  try {
    return decodeURIComponent(spaced)
  } catch {
    return spaced.replaceAll(ESCAPES, unescaped)
  }
}

/**
 * Characters that make several texts of a decoded one: separators and escapes, and all that become one when they are
 * normalised (NFKC).
 */
export const DIVIDES = /[%&;\u037e\ufe14\ufe54\ufe60\ufe6a\uff05\uff06\uff1b]/

/** A text, and what it is after one to three decodings, each normalised (NFKC) or not. */
function decodingsOf(text: string): ReadonlySet<string> {
  const all = new Set([text, text.normalize('NFKC')])
  let latest: readonly string[] = [...all]
  for (let count = 0; count < MOST_DECODINGS && latest.length > 0; count += 1) {
    const decoded = latest.map(decodedOnce).filter((each) => !all.has(each))
    latest = [...new Set(decoded.flatMap((each) => [each, each.normalize('NFKC')]))]
    for (const each of latest) all.add(each)
  }
  return all
}

/** The readings of a decoded name, also without regard to `-` and `_`: a name of a body, or of any place. */
export const decodedMemberReadings = (name: string): readonly string[] => readingsOf(name).map(withoutJoints)

const withoutJoints = (name: string): string => name.replaceAll(/[-_]/g, '')

/**
 * Finds one of some names that a service may read in a text: one that decodes it again, or before it splits it, or that
 * normalises it.
 * @param text a pair as it is sent, or a value that becomes part of one
 */
export type FindHidden = (text: string, kind: 'pair' | 'value') => string | undefined

export const beforeSign = (pair: string): string => pair.slice(0, (pair + '=').indexOf('='))

type Readings = (name: string) => readonly string[]

/** @param names decoded */
export function compileFindHidden(names: readonly string[], readings: Readings = readingsOf): FindHidden {
  const nameOf = byReading(names, readings)
  const wanted = new WantedNames(names, (name) => name)
  const nameIn = (name: string): string | undefined =>
    readings(name)
      .map((reading) => nameOf.get(reading))
      .find((found) => found !== undefined)
  const firstIn = (text: string, kind: 'pair' | 'value'): string | undefined => {
    const [first = '', ...others] = text.split(/[&;]/)
    const named = others.filter((other) => other.includes('=')).map(beforeSign)
    const all = kind === 'pair' ? [beforeSign(first), ...named] : named
    return all.map(nameIn).find((found) => found !== undefined)
  }
  return (text, kind) => {
    // Most texts: a value that stays one value, behind a plain name, which was judged by itself.
    const isOneValue = kind === 'value' || (text.indexOf('%') > text.indexOf('=') && text.includes('='))
    if (isOneValue && !DIVIDES.test(decodedOnce(text))) return undefined
    if (!wanted.mayBeIn(text, kind)) return undefined
    for (const decoded of decodingsOf(text)) {
      const found = firstIn(decoded, kind)
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** Names by what they are read as. */
export const byReading = (
  names: readonly string[],
  readings: Readings = readingsOf,
): ReadonlyMap<string, string> =>
  new Map(names.flatMap((name) => readings(name).map((reading) => [reading, name] as const)))

function refuseTwiceEncoded(pair: string): void {
  if (decodedOnce(pair).search(ESCAPES) !== -1)
    throw new Fault('unsendable_argument', {
      say: 'A part of the query is percent-encoded twice. Encode it once.',
    })
}

/**
 * Finds names that are taken or kept out. Those that an operation declares in any spelling are not looked for: what may
 * hide one of them is refused where it is declared.
 * @returns undefined where there are none
 */
export function compileFindTaken(
  taken: readonly string[],
  { names, declared }: KeptNames = NOTHING_KEPT,
): FindHidden | undefined {
  const known = new Set(declared.flatMap(decodedMemberReadings))
  const kept = names.filter((name) => !decodedMemberReadings(name).some((reading) => known.has(reading)))
  const [findTaken, findKept] = [
    taken.length === 0 ? undefined : compileFindHidden(taken),
    kept.length === 0 ? undefined : compileFindHidden(kept, decodedMemberReadings),
  ]
  if (findTaken === undefined || findKept === undefined) return findTaken ?? findKept
  return (text, kind) => findTaken(text, kind) ?? findKept(text, kind)
}

const NOTHING_KEPT: KeptNames = { names: [], declared: [] }

interface QueryRules {
  /** Names, decoded, whose pairs never pass, in any reading. */
  readonly taken: readonly string[]
  /** Names, decoded, of the only pairs that pass; undefined: all others do. */
  readonly only: readonly string[] | undefined
  /** Whether a pair that a second decoding changes is refused. */
  readonly strict: boolean
  /** As `taken`, and without regard to `-` and `_`: names that a service may know from a header or a body. */
  readonly kept?: KeptNames | undefined
}

export interface KeptNames {
  readonly names: readonly string[]
  /** Names of pairs that pass nevertheless, decoded, in this very case: they are checked where they are declared (C4.11). */
  readonly declared: readonly string[]
}

/** Takes pairs out of a query; the rest stays byte for byte. Throws Fault `unsendable_argument`. */
type QueryFilter = (query: string) => string

/** Names that were decided about: the same few in call after call, and no more than this many, nor longer ones. */
const MOST_KNOWN = 1000
const LONGEST_KNOWN = 64

/** Undefined if every pair passes. */
export function compileQueryFilter({ taken, only, strict, kept }: QueryRules): QueryFilter | undefined {
  const keptNames = kept?.names ?? []
  if (taken.length + keptNames.length === 0 && only === undefined && !strict) return undefined
  const refused = new Set(taken.flatMap(readingsOf))
  const keptReadings = new Set(keptNames.flatMap(decodedMemberReadings))
  const declared = new Set(kept?.declared)
  const listed = only && new Set(only)
  const decide = (name: string): boolean => {
    const readings = readingsOfSent(name)
    if (readings === undefined || readings.some((reading) => refused.has(reading))) return false
    const isKept =
      keptReadings.size > 0 && readings.some((reading) => keptReadings.has(withoutJoints(reading)))
    if (isKept && !declared.has(decodeQueryText(name) ?? '')) return false
    return listed === undefined || listed.has(decodeQueryText(name) ?? '')
  }
  const known = new Map<string, boolean>()
  const passes = (name: string): boolean => {
    const found = known.get(name)
    if (found !== undefined) return found
    const decided = decide(name)
    if (known.size < MOST_KNOWN && name.length <= LONGEST_KNOWN) known.set(name, decided)
    return decided
  }
  const findHidden = compileFindTaken(taken, kept)
  const check = (pair: string): void => {
    if (!pair.includes('%')) return
    if (strict) refuseTwiceEncoded(pair)
    if (findHidden?.(pair, 'pair') !== undefined)
      throw new Fault('unsendable_argument', {
        say: 'It holds, encoded, a parameter of the query that only this service sets. Leave it out.',
      })
  }
  return (query) => filterPairs(query, passes, check)
}

export const isSeparator = (query: string, at: number): boolean => query[at] === '&' || query[at] === ';'

/** @param query empty, or beginning with `?` */
function filterPairs(
  query: string,
  passes: (name: string) => boolean,
  check: (pair: string) => void,
): string {
  let kept: string | undefined
  for (let start = 1, end = 0; start <= query.length && query !== ''; start = end + 1) {
    for (end = start; end < query.length && !isSeparator(query, end);) end += 1
    if (!passes(nameIn(query, start, end))) continue
    check(query.slice(start, end))
    kept = kept === undefined ? query.slice(start, end) : kept + query.slice(start - 1, end)
  }
  return kept === undefined ? '' : `?${kept}`
}

function nameIn(query: string, start: number, end: number): string {
  const sign = query.indexOf('=', start)
  return query.slice(start, sign === -1 ? end : Math.min(sign, end))
}
