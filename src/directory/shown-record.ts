/** A record as operators see it: in the form in which it is written, without hashes, with its version. */
import { createHash } from 'node:crypto'
import type { Found } from './editors.ts'
import { type Noun, type NounName, NOUNS, type Written } from './nouns.ts'
import { writtenForm } from './read-records.ts'

export interface ShownRecord {
  /**
   * The members of the record, and `source`: `configuration` or `store`. Of a client also `validSecrets` and, during a
   * rotation, `oldSecretEndsAt`.
   */
  readonly record: Written
  /** Changes with each change of the record; never the same for another record of the same key. */
  readonly tag: string
}

/** Characters of base64url. */
const DIGEST = 12

const withoutHidden = ({ hidden }: Noun, written: Written): Written =>
  Object.fromEntries(Object.entries(written).filter(([member]) => !Object.hasOwn(hidden, member)))

/** Members in the order of the schema, so that the text is the same however the record was made. */
function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([member, inner]) => [member, inOrder(inner)]))
}

/**
 * The tag of a version. Versions are counted from 1 for each record, so a digest tells a record from one that was removed.
 *
 * @param version undefined: of the configuration
 */
export function tagOf(what: NounName, version: number | undefined, written: Written): string {
  const plain = JSON.stringify(inOrder(withoutHidden(NOUNS[what], written)))
  const digest = createHash('sha256').update(plain).digest('base64url').slice(0, DIGEST)
  return `${version ?? 0}-${digest}`
}

const secretsOf = ({ validSecrets, oldSecretEndsAt }: Found): Written => ({
  ...(validSecrets !== undefined && { validSecrets }),
  ...(oldSecretEndsAt !== undefined && { oldSecretEndsAt: new Date(oldSecretEndsAt).toISOString() }),
})

/** The record as it is shown and listed. */
export const shownForm = (what: NounName, found: Found): Written => ({
  ...withoutHidden(NOUNS[what], writtenForm(NOUNS[what].schema, found.record)),
  ...secretsOf(found),
  source: found.source,
})

export const showRecord = (what: NounName, found: Found): ShownRecord => ({
  record: shownForm(what, found),
  tag: tagOf(what, found.version, writtenForm(NOUNS[what].schema, found.record)),
})
