import { withoutDirectionControls } from '../../base/kernel/clean-text.ts'
import { withoutHashes } from './error-for-log.ts'

/** The module's answer is no user. The message says why; it contains no value that may be a hash. */
export class PersonMistake extends Error {
  override readonly name = 'PersonMistake'

  constructor(message: string) {
    super(withoutHashes(message))
  }
}

/** How many members one object may have, and how many items one list. */
const MOST_MEMBERS = 1000
/** The longest text, in characters. */
const MOST_TEXT = 4000

export type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain }

/**
 * A copy of what the module answered, of plain data only: what the module does with its object later changes nothing, and
 * nothing is lost where it is handed to another thread.
 * @throws PersonMistake, which names the member
 */
export function plainPerson(given: unknown): { readonly [key: string]: Plain } | undefined {
  if (given === undefined || given === null) return undefined
  try {
    return copyMembers(given, '', MEMBERS)
  } catch (thrown) {
    throw thrown instanceof PersonMistake ? thrown : new PersonMistake('the user cannot be read')
  }
}

type Copy = (given: unknown, at: string) => Plain | undefined

/** Elsewhere an object is refused before the record is checked: `{ file: … }` would read a file. */
const MEMBERS: Readonly<Record<string, Copy>> = {
  customers: (given, at) => copyList(given, at),
  access: (given, at) => copyMembers(given, at, {}),
  claims: (given, at) => copyMembers(given, at, { address: copyClaims, ...NAMES }, isEmpty),
}

/**
 * Parts of a person's name, without what steers the direction of writing. Elsewhere such a name is refused; here it may
 * have been kept for years in a system that takes it, and its owner could not log in.
 */
const NAMES: Readonly<Record<string, Copy>> = Object.fromEntries(
  ['name', 'given_name', 'middle_name', 'family_name'].map((member) => [member, copyName]),
)

function copyName(given: unknown, at: string): Plain {
  const copy = copyScalar(given, at)
  return typeof copy === 'string' ? withoutDirectionControls(copy) : copy
}

/** As databases say that there is none. */
const isEmpty = (value: unknown): boolean =>
  value === null || (typeof value === 'string' && withoutDirectionControls(value) === '')

function copyClaims(given: unknown, at: string): Plain {
  return copyMembers(given, at, {}, isEmpty)
}

/** @param at the path of the object; empty for the user */
function copyMembers(
  given: unknown,
  at: string,
  others: Readonly<Record<string, Copy>>,
  isAbsent: (value: unknown) => boolean = () => false,
): { readonly [key: string]: Plain } {
  const what = at === '' ? 'the user' : at
  if (typeof given !== 'object' || given === null || Array.isArray(given) || !isPlain(given))
    throw new PersonMistake(`${what} is ${kindInWords(given)}; expected an object of plain data`)
  const names = Object.keys(given)
  if (names.length > MOST_MEMBERS) throw new PersonMistake(`${what} has more than ${MOST_MEMBERS} members`)
  const entries = names.flatMap((name) => {
    const value = (given as Readonly<Record<string, unknown>>)[name]
    if (value === undefined || isAbsent(value)) return []
    const copy = Object.hasOwn(others, name) ? others[name] : copyScalar
    const short = name.slice(0, MOST_NAME)
    return [[short, copy?.(value, at === '' ? short : `${at}.${short}`) ?? null] as const]
  })
  return Object.fromEntries(entries)
}

/** How much of a member's name is read, in characters: no known member has a longer name. */
const MOST_NAME = 200

/** An object with a class (a map, a date, a row of a library) is not plain: members could be lost that are not its own. */
function isPlain(given: object): boolean {
  const prototype = Object.getPrototypeOf(given) as object | null
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

function copyList(given: unknown, at: string): Plain[] {
  if (!Array.isArray(given)) throw new PersonMistake(`${at} is ${kindInWords(given)}; expected a list`)
  if (given.length > MOST_MEMBERS) throw new PersonMistake(`${at} has more than ${MOST_MEMBERS} items`)
  return Array.from(given, (item: unknown, index) => copyScalar(item, `${at}.${index}`))
}

function copyScalar(given: unknown, at: string): string | number | boolean | null {
  if (typeof given === 'string' && given.length > MOST_TEXT)
    throw new PersonMistake(`${at} has more than ${MOST_TEXT} characters`)
  if (given === null || ['string', 'number', 'boolean'].includes(typeof given))
    return given as string | number | boolean | null
  throw new PersonMistake(`${at} is ${kindInWords(given)}; expected a text, true or false`)
}

export function kindInWords(given: unknown): string {
  if (given === null) return 'null'
  if (Array.isArray(given)) return 'a list'
  if (typeof given === 'object') return isPlain(given) ? 'an object' : 'an object with a class'
  return `of type ${typeof given}`
}
