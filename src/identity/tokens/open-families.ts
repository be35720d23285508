import type { Purpose } from '../../contracts/store.ts'
import {
  drawFamily,
  type DrawnFamily,
  FAMILY,
  type FamilyDeps,
  type FamilyRecord,
  type FamilySource,
  findNumbered,
  type FoundFamily,
  isNumbered,
  type NewFamily,
} from './families.ts'
import { findOlder } from './older-tokens.ts'
import { RememberedRecords } from './remembered-records.ts'

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface Families {
  /** Draws a family, under the given id if there is one. */
  draw(family: NewFamily, id?: string): DrawnFamily
  /** The family of a refresh token; undefined for a token that is unknown, expired, or of an ended family. Changes nothing. */
  find(token: string, purpose?: Purpose): Promise<FoundFamily | undefined>
  /** The same for a token that is about to be used. If its family has changed elsewhere, only `rotate` may notice. */
  findToUse(token: string): Promise<FoundFamily | undefined>
  /** Uses a token. `ended` or `replayed` if that happened after its family was found. */
  rotate(token: string, family: FoundFamily): Promise<'rotated' | 'ended' | 'replayed'>
}

/** All state that counts is in the store, so any number of processes may use it. */
export function openFamilies(deps: FamilyDeps): Families {
  const { clock, store } = deps
  const rotated = new RememberedRecords()
  const stored =
    (purpose?: Purpose): FamilySource =>
    (family) =>
      store.find(FAMILY, family, purpose)
  const recalled: FamilySource = async (family, number) => {
    const entry = rotated.recall(family, clock.now())
    // An older token may be within the grace, or a replay: the store has to be asked.
    const isInUse = (entry?.value as FamilyRecord | undefined)?.generation === number
    return isInUse ? entry : stored()(family, number)
  }
  const findBy = (token: string, source: FamilySource, purpose?: Purpose): ReturnType<Families['find']> =>
    isNumbered(token) ? findNumbered(token, source, deps) : findOlder(token, deps, purpose)
  const find: Families['find'] = (token, purpose) => findBy(token, stored(purpose), purpose)
  return {
    draw: (family, id) => drawFamily(family, deps, id),
    find,
    findToUse: (token) => findBy(token, recalled),
    async rotate(token, family) {
      let found: FoundFamily | undefined = family
      while (found?.state === 'fresh') {
        if (await use(found, rotated, deps)) return 'rotated'
        // Another use came first: a parallel one, which the grace allows, or one that the grace no longer covers.
        found = await find(token)
      }
      if (found === undefined) return 'ended'
      return found.state === 'repeated' ? 'rotated' : 'replayed'
    },
  }
}

/**
 * Counts the record up. False if it has changed since, or is gone. Where the store has lost writes it takes several steps,
 * one for each number: so the version of a record and its number always grow together, and what another process remembers
 * of the lost writes never fits a later record.
 */
async function use(family: FoundFamily, rotated: RememberedRecords, deps: FamilyDeps): Promise<boolean> {
  const { expiresAt, id, next, record } = family
  rotated.forget(id)
  let { version } = family
  for (let generation = (record.generation ?? 0) + 1; ; generation += 1) {
    const value: FamilyRecord = { ...record, salt: next.salt, generation, rotatedAt: deps.clock.now() }
    if (!(await deps.store.replace(FAMILY, id, version, value))) return false
    version += 1
    if (generation < next.generation) continue
    rotated.remember({ key: id, value, version, expiresAt, usedAt: undefined })
    return true
  }
}
