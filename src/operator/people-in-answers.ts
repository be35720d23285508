/** What the admin API leaves out for operators who may not read of people (C12.2.4). */

const PERSON = '[person]'

/** Members whose value is a person's. */
const PERSONAL: ReadonlySet<string> = new Set(['subject', 'sub', 'user', 'username', 'email'])
/** Members with sentences, which may repeat such a value. */
const PROSE: ReadonlySet<string> = new Set(['words', 'detail', 'text'])
/**
 * Lines that tell of a place in the configuration: below these keys it is a person's name, and what follows may tell of
 * another one. File and line stand before it.
 */
const OF_USERS = /\bdirectory\.(users|files\.users)\b.*/s

type Members = Readonly<Record<string, unknown>>

const isMembers = (value: unknown): value is Members => typeof value === 'object' && value !== null

/** Whether a member tells of a person: by its name, or as the row of a user among those who gain or lose access. */
const isPersonal = (key: string, member: unknown, { kind }: Members): member is string =>
  typeof member === 'string' && (PERSONAL.has(key) || (key === 'who' && kind === 'user'))

/** The texts that stand for a person in an answer. */
const personsIn = (value: unknown): readonly string[] =>
  !isMembers(value)
    ? []
    : Object.entries(value).flatMap(([key, member]) =>
        isPersonal(key, member, value) ? [member] : personsIn(member),
      )

/** As a whole word: a short one must not be found within others. */
const withoutWord = (text: string, word: string): string =>
  text.replace(new RegExp(`(?<![\\w-])${RegExp.escape(word)}(?![\\w-])`, 'g'), PERSON)

/** An answer without names, subjects and claims of people. What else it tells stays. */
export function withoutPeople(answer: unknown): unknown {
  const persons = personsIn(answer)
  const copyText = (text: string, key: string): string => {
    const line = text.replace(OF_USERS, `directory.$1  ${PERSON}`)
    return PROSE.has(key) ? persons.reduce(withoutWord, line) : line
  }
  /** `key`: of the member that holds the value. */
  const copy = (value: unknown, key: string): unknown => {
    if (typeof value === 'string') return copyText(value, key)
    if (Array.isArray(value)) return value.map((each) => copy(each, key))
    if (!isMembers(value)) return value
    const entries = Object.entries(value).map(([name, member]) => {
      const isUsers = key === 'directory' && name === 'users'
      return [name, isUsers || isPersonal(name, member, value) ? PERSON : copy(member, name)]
    })
    return Object.fromEntries(entries) as unknown
  }
  return copy(answer, '')
}
