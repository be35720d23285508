import { pathText, Report } from '../../config/report.ts'
import { withoutDirectionControls } from '../../kernel/clean-text.ts'
import { personRecordSchema, type PersonRecord } from '../config.ts'
import { readRecord } from '../read-records.ts'
import { withoutHashes } from './error-for-log.ts'

/** What the module answered is no user. The message says why; it holds no value that may be a hash. */
export class PersonMistake extends Error {
  override readonly name = 'PersonMistake'
}

/** Members of one object, items of one list. */
const MOST_MEMBERS = 1000
/** Characters. */
const MOST_TEXT = 4000
/** Problems that are told. */
const MOST_PROBLEMS = 5

type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain }

/**
 * What the module answered, as a record: undefined for nobody. It is checked like a user of the configuration, after a
 * copy was made: what the module does with its object later changes nothing.
 * @throws PersonMistake
 */
export function readPerson(given: unknown): PersonRecord | undefined {
  if (given === undefined || given === null) return undefined
  const report = new Report()
  const record = readRecord(personRecordSchema, copyOf(given), report)
  if (record !== undefined) return record
  const problems = report.problems.map(({ path, message }) => `${pathText(path)} ${withoutValue(message)}`)
  throw new PersonMistake(withoutHashes(problems.slice(0, MOST_PROBLEMS).join('; ')))
}

/** `expected …` without `, got …`: the value may be anything that the module has. */
const withoutValue = (message: string): string => message.replace(/, got .*/s, '')

function copyOf(given: unknown): { readonly [key: string]: Plain } {
  try {
    return copyMembers(given, 'the user', MEMBERS)
  } catch (thrown) {
    throw thrown instanceof PersonMistake ? thrown : new PersonMistake('the user cannot be read')
  }
}

type Copy = (given: unknown, at: string) => Plain | undefined

/**
 * Only these members are more than one value. Everywhere else an object is refused before the record is checked: there
 * a configuration may have `{ file: … }`, which reads a file.
 */
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

function copyMembers(
  given: unknown,
  at: string,
  others: Readonly<Record<string, Copy>>,
  isAbsent: (value: unknown) => boolean = () => false,
): { readonly [key: string]: Plain } {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new PersonMistake(`${at} is ${kindOf(given)}; expected an object`)
  const names = Object.keys(given)
  if (names.length > MOST_MEMBERS) throw new PersonMistake(`${at} has more than ${MOST_MEMBERS} members`)
  const entries = names.flatMap((name) => {
    const value = (given as Readonly<Record<string, unknown>>)[name]
    if (value === undefined || isAbsent(value)) return []
    const copy = Object.hasOwn(others, name) ? others[name] : copyScalar
    return [[name.slice(0, MOST_NAME), copy?.(value, name) ?? null] as const]
  })
  return Object.fromEntries(entries)
}

/** Characters of a name that are read: of a longer one there is no such member. */
const MOST_NAME = 200

function copyList(given: unknown, at: string): Plain[] {
  if (!Array.isArray(given)) throw new PersonMistake(`${at} is ${kindOf(given)}; expected a list`)
  if (given.length > MOST_MEMBERS) throw new PersonMistake(`${at} has more than ${MOST_MEMBERS} items`)
  return Array.from(given, (item: unknown) => copyScalar(item, at))
}

function copyScalar(given: unknown, at: string): string | number | boolean | null {
  if (typeof given === 'string' && given.length > MOST_TEXT)
    throw new PersonMistake(`${at.slice(0, MOST_NAME)} has more than ${MOST_TEXT} characters`)
  if (given === null || ['string', 'number', 'boolean'].includes(typeof given))
    return given as string | number | boolean | null
  throw new PersonMistake(`${at.slice(0, MOST_NAME)} is ${kindOf(given)}; expected a text, true or false`)
}

function kindOf(given: unknown): string {
  if (given === null) return 'null'
  return Array.isArray(given) ? 'a list' : `of type ${typeof given}`
}
