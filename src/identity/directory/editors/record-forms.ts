/** The forms in which a record is told: to operators, and to the trail (C11.5.1, C12.1.7). */
import { createHash } from 'node:crypto'
import type { JsonObject } from '../../../base/http/body/json.ts'
import { writtenForm } from '../records/read-records.ts'
import type { FoundRecord, PlannedChange, Written } from './editing.ts'
import { isFixed, isMember, type RecordKind } from './record-kind.ts'

type Kind = Pick<RecordKind, 'schema' | 'names'>

export interface ShownRecord {
  /** Its members, `source`, and of a client `validSecrets` and `oldSecretEndsAt`. */
  readonly record: Written
  /** Changes with each change of the record; never the same for another record of the same key. */
  readonly tag: string
}

/** The length of the digest in a tag, in characters of base64url. */
const DIGEST = 12

const withoutHidden = (kind: Kind, written: Written): Written =>
  Object.fromEntries(Object.entries(written).filter(([member]) => !isMember('hidden', kind, member)))

/** Members in the order of the schema, so that the text is the same however the record was made. */
function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([member, inner]) => [member, inOrder(inner)]))
}

/**
 * The tag of a version. Versions are counted from 1 for each record, so a digest distinguishes a record from a removed
 * one of the same name.
 *
 * @param version undefined: of the configuration
 */
export function tagOf(kind: Kind, version: number | undefined, written: Written): string {
  const plain = JSON.stringify(inOrder(withoutHidden(kind, written)))
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, DIGEST)
  return `${version ?? 0}-${digest}`
}

const secretsOf = ({ validSecrets, oldSecretEndsAt }: FoundRecord<object>): Written => ({
  ...(validSecrets !== undefined && { validSecrets }),
  ...(oldSecretEndsAt !== undefined && { oldSecretEndsAt: new Date(oldSecretEndsAt).toISOString() }),
})

/** The record as operators see it: in the form in which it is written, without hashes. */
export const shownForm = (kind: Kind, found: FoundRecord<object>): Written => ({
  ...withoutHidden(kind, writtenForm(kind.schema, found.record)),
  ...secretsOf(found),
  ...(found.disabledByCommand && { disabled: true, disabledByCommand: true }),
  source: found.source,
})

export const showRecord = (kind: Kind, found: FoundRecord<object>): ShownRecord => ({
  record: shownForm(kind, found),
  tag: tagOf(kind, found.version, writtenForm(kind.schema, found.record)),
})

/** The longest facts as JSON, in characters: less than the admin API accepts from commands. */
const MOST_FACTS = 8000

const plain = (members: object): JsonObject => JSON.parse(JSON.stringify(members)) as JsonObject

/** For the trail: before and after; of personal data only the member, of long lists the difference. */
export function changeFacts(
  kind: Kind,
  { keys, written }: Pick<PlannedChange, 'keys' | 'written'>,
): JsonObject {
  const facts = (describe: (before: unknown, after: unknown) => object): JsonObject =>
    plain(
      Object.fromEntries(
        keys.map((key) => {
          const [before, after] = [written.before[key], written.after[key]]
          return [key, isMember('personal', kind, key) ? differing(before, after) : describe(before, after)]
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

const isTreeOrNone = (value: unknown): boolean => value === undefined || isTree(value)

const isTree = (value: unknown): value is Written => typeof value === 'object' && value !== null

/** The names of the members that differ: `email`, `address.locality`. */
function differing(before: unknown = {}, after: unknown = {}): readonly string[] {
  if (!isTree(before) || !isTree(after)) return []
  return Object.keys({ ...before, ...after }).flatMap((name) => {
    const [one, other] = [before[name], after[name]]
    if (isTreeOrNone(one) && isTreeOrNone(other))
      return differing(one, other).map((inner) => `${name}.${inner}`)
    return one === other ? [] : [name]
  })
}

/** Recorded of an addition, once it was checked. */
export function addedFacts(kind: Kind, written: Written): JsonObject {
  const members = Object.entries(written).filter(
    ([member]) => !isFixed(kind, member) && !isMember('hidden', kind, member),
  )
  const facts = plain(
    Object.fromEntries(
      members.map(([member, value]) => [
        member,
        isMember('personal', kind, member) ? differing({}, value) : value,
      ]),
    ),
  )
  return JSON.stringify(facts).length <= MOST_FACTS ? facts : { keys: members.map(([member]) => member) }
}
