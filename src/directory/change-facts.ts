/** What has changed in a record, for the audit trail: no hash, and of personal data only which member. */
import { type SchemaView, viewOf } from '../config/schema-view.ts'
import type { JsonObject } from '../http/json.ts'
import { type Noun, type NounName, NOUNS, type Written } from './nouns.ts'
import type { PlannedChange } from './planned-change.ts'

/** Characters of JSON, below what the admin API accepts of commands. */
const MOST_FACTS = 8000

/** The members that have a value, as plain data. */
const plain = (members: object): JsonObject => JSON.parse(JSON.stringify(members)) as JsonObject

/** Each key that changes, with its value before and after. Long lists are told by what was added and removed. */
export function changeFacts(
  { keys, written }: Pick<PlannedChange, 'keys' | 'written'>,
  personal: readonly string[] = [],
): JsonObject {
  const facts = (describe: (before: unknown, after: unknown) => object): JsonObject =>
    plain(
      Object.fromEntries(
        keys.map((key) => {
          const [before, after] = [written.before[key], written.after[key]]
          return [key, personal.includes(key) ? namesOf(before, after) : describe(before, after)]
        }),
      ),
    )
  const forms = [(before: unknown, after: unknown) => ({ before, after }), difference]
  const fitting = forms.map(facts).find((form) => JSON.stringify(form).length <= MOST_FACTS)
  return fitting ?? { keys: [...keys] }
}

function difference(before: unknown, after: unknown): object {
  if (!Array.isArray(before) || !Array.isArray(after)) return { before, after }
  return {
    added: after.filter((item) => !before.includes(item)),
    removed: before.filter((item) => !after.includes(item)),
  }
}

const isTree = (value: unknown): value is Written => typeof value === 'object' && value !== null

/** The names of the members that differ: `email`, `address.locality`. */
function namesOf(before: unknown = {}, after: unknown = {}): readonly string[] {
  if (!isTree(before) || !isTree(after)) return []
  return Object.keys({ ...before, ...after }).flatMap((name) => {
    const [one, other] = [before[name], after[name]]
    if (isTree(one) || isTree(other)) return namesOf(one, other).map((inner) => `${name}.${inner}`)
    return one === other ? [] : [name]
  })
}

const factOf = ({ personal }: Noun, member: string, value: unknown): unknown =>
  personal.includes(member) ? namesOf({}, value) : value

/** The members that such a record can have, sections within it too. The values of maps are left as they are. */
function knownPart({ properties }: SchemaView, value: unknown): unknown {
  if (properties === undefined || !isTree(value) || Array.isArray(value)) return value
  const known = Object.entries(value).flatMap(([member, inner]) => {
    const view = Object.hasOwn(properties, member) ? properties[member] : undefined
    return view === undefined ? [] : [[member, knownPart(view, inner)] as const]
  })
  return Object.fromEntries(known)
}

/**
 * What a new record holds. Its names stand in the record's `on`. It is told before the record is checked, so members that
 * it cannot have are left out: one may be a password under a mistyped name.
 */
export function addedFacts(what: NounName, written: Written): JsonObject {
  const noun = NOUNS[what]
  const told = Object.entries(knownPart(viewOf(noun.schema), written) as Written).filter(
    ([member]) => !noun.fixed.includes(member) && !Object.hasOwn(noun.hidden, member),
  )
  const facts = plain(
    Object.fromEntries(told.map(([member, value]) => [member, factOf(noun, member, value)])),
  )
  return JSON.stringify(facts).length <= MOST_FACTS ? facts : { keys: told.map(([member]) => member) }
}
