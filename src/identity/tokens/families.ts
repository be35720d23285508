import { createHash } from 'node:crypto'
import type { Entry, NewEntry } from '../../contracts/store.ts'
import type { Begun } from '../../contracts/tokens.ts'
import { newSecret } from '../../kernel/ids.ts'
import type { IdentityDeps } from '../dependencies.ts'
import { readGrantedScope } from '../scopes.ts'

/**
 * Refresh tokens and their families in the store (C6.1.7).
 *
 * `refresh_family`, by its id: the FamilyRecord. It never changes. A token without its family is invalid, so one removal
 * ends a family, even if another call writes a token of it at the same time.
 *
 * `refresh_token`, by the SHA-256 of the token: the TokenRecord. A use first creates the successor's record (its token
 * is HMAC(server secret, token), so every use creates the same one, and `create` is false for all but the first), then
 * `consume`s the token: from then on the token counts as used. A crash before that leaves the token unused, and a
 * successor that nobody received. A crash after it loses only the answer: a repeat within the grace (counted from
 * `usedAt`) gets the same successor, if that one was not used yet. A later use ends the family.
 *
 * Both expire with the family (its absolute lifetime) and carry the indexes by which `StoreTokenRevoker` finds them. A family that
 * a rule has ended counts as removed, even if its record is still there.
 */
export const FAMILY = 'refresh_family'
export const REFRESH_TOKEN = 'refresh_token'

/** A type alias, since an interface has no index signature and so is no StoredValue. */
export type FamilyRecord = {
  readonly client: string
  readonly subject: string
  /** As granted, with the target. A narrower scope of a refresh request changes only the access token. */
  readonly scope: string
  /** Seconds since the epoch. */
  readonly authTime: number
  /** The grant that began the family. */
  readonly grant: string
  /** `RuleGuard.asOf` of the call that began it; absent if an older version did. */
  readonly asOf?: number
}

export type TokenRecord = {
  readonly family: string
}

/** A family whose ids are drawn. Nobody can use its token before `open` has stored both. */
export interface DrawnFamily {
  readonly family: string
  readonly token: string
  readonly open: () => Promise<void>
}

/** The family of a refresh token, and the state of that token. */
export interface FoundFamily {
  readonly id: string
  readonly record: FamilyRecord
  /** When the family ends, milliseconds since the epoch. */
  readonly expiresAt: number | undefined
  /**
   * `fresh`: the token was never used. `repeated`: it was used within the grace, and its successor was not used.
   * `replayed`: it must not be used any more (C6.1.7).
   */
  readonly state: 'fresh' | 'repeated' | 'replayed'
}

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface Families {
  /** Begins a family, under the given id if there is one. */
  draw(record: FamilyRecord, id?: string): DrawnFamily
  /** The family of a refresh token; undefined for a token that is unknown, expired, or of an ended family. Changes nothing. */
  find(token: string): Promise<FoundFamily | undefined>
  /** The token that comes after a token: the same for every use within the grace. Good only once `rotate` has stored it. */
  successorOf(token: string): string
  /** Uses a token, and stores its successor. `ended` or `replayed` if that happened after the token was found. */
  rotate(token: string, family: FoundFamily): Promise<'rotated' | 'ended' | 'replayed'>
}

/** The key of a refresh token's record: its hash, because the token itself is never stored. */
export const tokenKey = (token: string): string => createHash('sha256').update(token).digest('base64url')

type FamilyDeps = Pick<IdentityDeps, 'store' | 'clock' | 'config' | 'deriver' | 'rules'>

/** All state is in the store, so any number of processes may use it. */
export function openFamilies(deps: FamilyDeps): Families {
  return {
    draw(record, id) {
      const drawn = { family: id ?? newSecret(16), token: newSecret() }
      return { ...drawn, open: () => openFamily(drawn, record, deps) }
    },
    find: (token) => findFamily(token, deps),
    successorOf: (token) => deps.deriver.derive(token),
    rotate: (token, family) => rotate(token, family, deps),
  }
}

async function openFamily(
  { family, token }: Pick<DrawnFamily, 'family' | 'token'>,
  record: FamilyRecord,
  { clock, config, store }: FamilyDeps,
): Promise<void> {
  const kept = {
    expiresAt: clock.now() + config.refreshToken.lifetime,
    indexes: indexesOf(family, record),
  }
  // The family first: after a crash in between nobody has a token, and the family expires unused.
  await store.create(FAMILY, family, { value: record, ...kept })
  await store.create(REFRESH_TOKEN, tokenKey(token), { value: tokenRecord(family), ...kept })
}

const tokenRecord = (family: string): TokenRecord => ({ family })

/** The business of a scope's target, if it has one. */
export const businessOf = (scope: string): string | undefined => readGrantedScope(scope).target?.business

/** A family, or the code that it comes from, as `RuleGuard.hasEnded` takes it. */
export const begunAs = (
  family: string,
  { asOf, authTime, client, scope, subject }: Omit<FamilyRecord, 'grant'>,
): Begun => ({ family, client, subject, business: businessOf(scope), asOf, begunAt: authTime * 1000 })

function indexesOf(
  family: string,
  { client, subject, scope }: FamilyRecord,
): NonNullable<NewEntry['indexes']> {
  const business = businessOf(scope)
  return { family, client, subject, ...(business !== undefined && { business }) }
}

async function findFamily(token: string, deps: FamilyDeps): Promise<FoundFamily | undefined> {
  const { rules, store } = deps
  const entry = await store.find(REFRESH_TOKEN, tokenKey(token))
  if (entry === undefined) return undefined
  const { family: id } = entry.value as TokenRecord
  const family = await store.find(FAMILY, id)
  if (family === undefined) return undefined
  const { expiresAt, value } = family
  const record = value as FamilyRecord
  if (rules.hasEnded(begunAs(id, record))) return undefined
  return { id, record, expiresAt, state: await stateOf(entry, token, deps) }
}

async function stateOf(entry: Entry, token: string, deps: FamilyDeps): Promise<FoundFamily['state']> {
  const { clock, config, deriver, store } = deps
  if (entry.usedAt === undefined) return 'fresh'
  // A use in the future means that the clock was set back. Then its age is unknown.
  if (Math.abs(clock.now() - entry.usedAt) >= config.refreshToken.grace) return 'replayed'
  const successor = await store.find(REFRESH_TOKEN, tokenKey(deriver.derive(token)))
  return successor?.usedAt === undefined ? 'repeated' : 'replayed'
}

async function rotate(
  token: string,
  { id, record, expiresAt }: FoundFamily,
  deps: FamilyDeps,
): Promise<'rotated' | 'ended' | 'replayed'> {
  const { deriver, store } = deps
  const successor = deriver.derive(token)
  await store.create(REFRESH_TOKEN, tokenKey(successor), {
    value: tokenRecord(id),
    indexes: indexesOf(id, record),
    ...(expiresAt !== undefined && { expiresAt }),
  })
  const used = await store.consume(REFRESH_TOKEN, tokenKey(token))
  if (used === undefined) return 'ended'
  // Another use came first: a parallel one, which the grace allows, or one that the grace no longer covers.
  if (!used.first && (await stateOf(used.entry, token, deps)) === 'replayed') return 'replayed'
  return 'rotated'
}
