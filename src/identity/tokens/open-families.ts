import {
  drawFamily,
  type DrawnFamily,
  FAMILY,
  type FamilyDeps,
  type FamilyRecord,
  findNumbered,
  type FoundFamily,
  isNumbered,
  type NewFamily,
} from './families.ts'
import { findOlder } from './older-tokens.ts'

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface Families {
  /** Draws a family, under the given id if there is one. */
  draw(family: NewFamily, id?: string): DrawnFamily
  /** The family of a refresh token; undefined for a token that is unknown, expired, or of an ended family. Changes nothing. */
  find(token: string): Promise<FoundFamily | undefined>
  /** Uses a token. `ended` or `replayed` if that happened after its family was found. */
  rotate(token: string, family: FoundFamily): Promise<'rotated' | 'ended' | 'replayed'>
}

/** All state is in the store, so any number of processes may use it. */
export const openFamilies = (deps: FamilyDeps): Families => ({
  draw: (family, id) => drawFamily(family, deps, id),
  find: (token) => find(token, deps),
  rotate: (token, family) => rotate(token, family, deps),
})

const find = (token: string, deps: FamilyDeps): Promise<FoundFamily | undefined> =>
  isNumbered(token) ? findNumbered(token, deps) : findOlder(token, deps)

async function rotate(token: string, family: FoundFamily, deps: FamilyDeps): ReturnType<Families['rotate']> {
  let found: FoundFamily | undefined = family
  while (found?.state === 'fresh') {
    const { id, next, record, version } = found
    const value: FamilyRecord = { ...record, ...next, rotatedAt: deps.clock.now() }
    if (await deps.store.replace(FAMILY, id, version, value)) return 'rotated'
    // Another use came first: a parallel one, which the grace allows, or one that the grace no longer covers.
    found = await find(token, deps)
  }
  if (found === undefined) return 'ended'
  return found.state === 'repeated' ? 'rotated' : 'replayed'
}
