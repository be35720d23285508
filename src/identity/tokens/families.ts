import type { Entry, NewRecord } from '../../contracts/store.ts'
import type { Begun } from '../../contracts/tokens.ts'
import { equalSecrets, newOrderedId, newSecret } from '../../kernel/ids.ts'
import type { IdentityDeps } from '../dependencies.ts'
import { readGrantedTarget } from '../scopes.ts'

/**
 * Refresh tokens and their families in the store (C6.1.7).
 *
 * `refresh_family`, by its id: the FamilyRecord. It is all that is stored: the tokens of a family are numbered, and the
 * record has the number of the one in use. A token is `v2.<secret>.<family>.<number>.<mac>`. `secret` names the secret
 * that the `mac` was made with: an HMAC of the family, the number and the family's salt. So whoever has the store alone,
 * or the secret alone, can make no token; and a stolen token tells nothing about the next one.
 *
 * A use counts the record's number up by one, with compare-and-set, and gives the next token. Every use of a token gives
 * the same next one. A crash before the write leaves the token unused. A crash after it loses only the answer: a repeat
 * within the grace (counted from `rotatedAt`) gets the same next token, while that one was not used. A later use ends the
 * family. A token with a higher number than the record's is genuine, or its mac would be wrong: the store has lost its
 * last writes (a backup was restored, or a failover lost some), and the client goes on.
 *
 * A family expires with its absolute lifetime and carries the indexes by which `StoreTokenRevoker` finds it. A family
 * that a rule has ended counts as removed, even if its record is still there.
 */
export const FAMILY = 'refresh_family'

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
  /** Random; absent while the tokens of the family are those of an older version (older-tokens.ts). */
  readonly salt?: string
  /** The number of the token in use: 1 for the first one. Absent together with `salt`. */
  readonly generation?: number
  /** When the token before that one was used first, milliseconds since the epoch; absent if there was none. */
  readonly rotatedAt?: number
}

export type NewFamily = Omit<FamilyRecord, 'salt' | 'generation' | 'rotatedAt'>

/** A family whose id is drawn. Nobody can use its token before `record` is stored. */
export interface DrawnFamily {
  readonly family: string
  readonly token: string
  readonly record: NewRecord
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
  readonly state: TokenState
  /** The token that comes after this one: the same for every use. Good only once `rotate` has stored that it is. */
  readonly successor: string
  /** What the record says once the token is used. */
  readonly next: Numbering
  /** Of the record in the store. */
  readonly version: number
}

export type TokenState = 'fresh' | 'repeated' | 'replayed'
type Numbering = Pick<Required<FamilyRecord>, 'salt' | 'generation'>

export type FamilyDeps = Pick<IdentityDeps, 'store' | 'clock' | 'config' | 'deriver' | 'rules'>

/** Draws a family, under the given id if there is one. */
export function drawFamily(family: NewFamily, deps: FamilyDeps, given?: string): DrawnFamily {
  const { clock, config } = deps
  const id = given ?? newOrderedId(clock.now())
  const next = { salt: newSecret(16), generation: 1 }
  const value: FamilyRecord = { ...family, ...next }
  const expiresAt = clock.now() + config.refreshToken.lifetime
  const record = { kind: FAMILY, key: id, value, expiresAt, indexes: indexesOf(family) }
  return { family: id, token: tokenOf(id, next, deps), record }
}

/** Not by the family: its id is the key. */
function indexesOf({ client, subject, scope }: NewFamily): NonNullable<NewRecord['indexes']> {
  const business = businessOf(scope)
  return { client, subject, ...(business !== undefined && { business }) }
}

/** The business of a scope's target, if it has one. */
export const businessOf = (scope: string): string | undefined => readGrantedTarget(scope)?.business

/** A family, or the code that it comes from, as `RuleGuard.hasEnded` takes it. */
export const begunAs = (
  family: string,
  { asOf, authTime, client, scope, subject }: Omit<NewFamily, 'grant'>,
): Begun => ({ family, client, subject, business: businessOf(scope), asOf, begunAt: authTime * 1000 })

const FORM = 'v2'
const TOKEN = /^v2\.([\w-]{8})\.([\w-]{22})\.([1-9][0-9]{0,8})\.([\w-]{43})$/

/** Whether a text has the form of these tokens. Older versions made tokens without dots (older-tokens.ts). */
export const isNumbered = (token: string): boolean => token.startsWith(`${FORM}.`)

function tokenOf(family: string, { generation, salt }: Numbering, { deriver }: FamilyDeps): string {
  const mac = macOf(family, generation, salt, deriver)
  return [FORM, deriver.secretId, family, generation, mac].join('.')
}

/** None of the parts has a dot, so no two tokens have the same text. */
const macOf = (family: string, number: number, salt: string, deriver: FamilyDeps['deriver']): string =>
  deriver.derive([FORM, family, number, salt].join('.'))

/** Where the record of a family is looked up, for the token of this number. */
export type FamilySource = (family: string, number: number) => Promise<Entry | undefined>

/** The family of a token of this form, as `Families.find` answers it. */
export async function findNumbered(
  token: string,
  source: FamilySource,
  deps: FamilyDeps,
): Promise<FoundFamily | undefined> {
  const [, secret = '', family = '', digits, mac = ''] = TOKEN.exec(token) ?? []
  // One of another secret: that was replaced, because it was stolen or lost.
  if (!deps.deriver.isOf(secret)) return undefined
  const number = Number(digits)
  const entry = await source(family, number)
  if (entry === undefined) return undefined
  const { salt } = entry.value as FamilyRecord
  if (salt === undefined || !equalSecrets(mac, macOf(family, number, salt, deps.deriver))) return undefined
  return readFamily(entry, { salt, number }, deps)
}

/** What a family's record says of a genuine token; undefined if a rule has ended the family. */
export function readFamily(
  { key: id, value, expiresAt, version }: Entry,
  { salt, number }: { readonly salt: string; readonly number: number },
  deps: FamilyDeps,
): FoundFamily | undefined {
  const record = value as FamilyRecord
  if (deps.rules.hasEnded(begunAs(id, record))) return undefined
  const next = { salt, generation: number + 1 }
  const state = stateOf(record, number, deps)
  return { id, record, expiresAt, version, state, next, successor: tokenOf(id, next, deps) }
}

function stateOf({ generation = 0, rotatedAt }: FamilyRecord, number: number, deps: FamilyDeps): TokenState {
  if (number >= generation) return 'fresh'
  const isLast = number === generation - 1 && isWithinGrace(rotatedAt, deps)
  return isLast ? 'repeated' : 'replayed'
}

/**
 * A use in the future means that the clock was set back. Then its age is unknown. The time in which the store did not
 * answer counts for nothing: the client was told 503, though the use may have been stored.
 */
export function isWithinGrace(usedAt: number | undefined, { clock, config, store }: FamilyDeps): boolean {
  if (usedAt === undefined) return false
  const age = Math.abs(clock.now() - usedAt) - (store.silentSince?.(usedAt) ?? 0)
  return age < config.refreshToken.grace
}
