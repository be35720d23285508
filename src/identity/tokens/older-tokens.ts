import { hash } from 'node:crypto'
import type { Entry, Purpose } from '../../contracts/store.ts'
import { FAMILY, type FamilyDeps, type FoundFamily, isWithinGrace, readFamily } from './families.ts'

/**
 * Refresh tokens that version 0.1.0 gave: 43 characters without meaning, each with a record of its own. They work until
 * they expire or their family ends. The next token of such a family is number 1 of the new form (families.ts); from then
 * on the salt of the family names the older token that it comes from. None is made any more.
 *
 * `refresh_token`, by the SHA-256 of the token: the OlderRecord. `usedAt` is set if an older version has used it: then its
 * successor is HMAC(server secret, token), in the older form too.
 */
export const OLDER_TOKEN = 'refresh_token'

/** A type alias, since an interface has no index signature and so is no StoredValue. */
export type OlderRecord = {
  readonly family: string
}

/** The key of a token's record: its hash, because the token itself is never stored. */
export const olderKey = (token: string): string => hash('sha256', token, 'base64url')

/** The family of a token of the older form, as `Families.find` answers it. */
export async function findOlder(
  token: string,
  deps: FamilyDeps,
  purpose?: Purpose,
): Promise<FoundFamily | undefined> {
  const { store } = deps
  const key = olderKey(token)
  const entry = await store.find(OLDER_TOKEN, key, purpose)
  if (entry === undefined) return undefined
  const family = await store.find(FAMILY, (entry.value as OlderRecord).family, purpose)
  const found = family && readFamily(family, { salt: key, number: 0 }, deps)
  if (found === undefined || found.record.salt === key) return found
  if (found.record.salt !== undefined) return { ...found, state: 'replayed' }
  return entry.usedAt === undefined ? found : usedBefore(found, token, entry, deps)
}

/** An older version has used the token, and nobody has used its successor here. */
async function usedBefore(
  found: FoundFamily,
  token: string,
  { usedAt }: Entry,
  deps: FamilyDeps,
): Promise<FoundFamily> {
  const successor = deps.deriver.derive(token)
  const after = isWithinGrace(usedAt, deps)
    ? await deps.store.find(OLDER_TOKEN, olderKey(successor))
    : undefined
  const isUnused = after !== undefined && after.usedAt === undefined
  return { ...found, successor, state: isUnused ? 'repeated' : 'replayed' }
}
