import { hash } from 'node:crypto'
import type { Entry, NewRecord, Purpose } from '../../base/contracts/records/store.ts'
import type { Begun } from '../../base/contracts/records/tokens.ts'
import { equalSecrets, newOrderedId, newSecret } from '../../base/kernel/ids.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'
import { readGrantedTarget } from '../dependencies/scopes.ts'

/**
 * Refresh tokens and their families in the store (C6.1.7).
 *
 * `refresh_family`, by its id: the FamilyRecord. It is all that is stored: the tokens of a family are numbered, and the
 * record has the number of the one in use. A token is `v2.<secret>.<family>.<number>.<mac>`. `secret` names the secret
 * that the `mac` was made with: an HMAC of the family, the number and the family's salt. So the store alone, or the secret
 * alone, is not enough to make a token; and a stolen token tells nothing about the next one.
 *
 * A use counts the record's number up by one, with compare-and-set, and gives the next token. Every use of a token gives
 * the same next one. A crash before the write leaves the token unused. A crash after it loses only the answer: a repeat
 * within the grace (counted from `rotatedAt`) gets the same next token, while that one was not used. A later use ends the
 * family. A token with a higher number than the record's is genuine, or its mac would be wrong: the store has lost its
 * last writes (a backup was restored, or a failover lost some), and the client may continue.
 *
 * A family expires with its absolute lifetime and carries the indexes by which `StoreTokenRevoker` finds it. A family
 * that a rule has ended counts as removed, even if its record is still there.
 */
export const FAMILY = 'refresh_family'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
export type FamilyRecord = {
  readonly client: string
  readonly subject: string
  /** As granted, with the target. A narrower scope of a refresh request changes only the access token. */
  readonly scope: string
  /** When the user authenticated, in seconds since the epoch. */
  readonly authTime: number
  readonly grant: string
  /** True if it began with a proof of possession: then each use needs one (C6.1.7). */
  readonly needsProof?: true
  /** For a public client: the thumbprint of the only key that is accepted. */
  readonly jkt?: string
  /** `RevocationRules.asOf` of the call that began it; absent if an older version did. */
  readonly asOf?: number
  /** The id of the session that it was begun in, for a client that is told of its end (C6.3.3a). */
  readonly sid?: string
  /** The scope as it was asked for, for a client that is answered in its own words (C6.1.3). */
  readonly words?: string
  /** Random; absent while the tokens of the family are those of an older version (`OLDER_TOKEN`). */
  readonly salt?: string
  /** The number of the token in use: 1 for the first one. Absent together with `salt`. */
  readonly generation?: number
  /** When the token before that one was used first, milliseconds since the epoch; absent if there was none. */
  readonly rotatedAt?: number
}

type NewFamily = Omit<FamilyRecord, 'salt' | 'generation' | 'rotatedAt'>

/** A family whose id is drawn. Nobody can use its token before `record` is stored. */
export interface DrawnFamily {
  readonly family: string
  readonly token: string
  readonly record: NewRecord
}

export interface FoundFamily {
  readonly id: string
  readonly record: FamilyRecord
  /** When the family ends, milliseconds since the epoch. */
  readonly expiresAt: number | undefined
  /** `fresh`: never used. `repeated`: used within the grace, its successor not. `replayed`: not to be used (C6.1.7). */
  readonly state: TokenState
  /** The token that comes after this one: the same for every use. Good only once `rotate` has stored that it is. */
  readonly successor: string
  /** The numbering in the record once the token is used. */
  readonly next: Numbering
  /** The version of the record in the store. */
  readonly version: number
}

type TokenState = 'fresh' | 'repeated' | 'replayed'

type Numbering = Pick<Required<FamilyRecord>, 'salt' | 'generation'>

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

type FamilyDeps = Pick<IdentityDeps, 'store' | 'clock' | 'config' | 'deriver' | 'rules'>

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

function drawFamily(family: NewFamily, deps: FamilyDeps, given?: string): DrawnFamily {
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

const businessOf = (scope: string): string | undefined => readGrantedTarget(scope)?.business

/** A family, or the code that it comes from, as `RevocationRules.hasEnded` takes it. */
export const begunAs = (
  family: string,
  { asOf, authTime, client, scope, subject }: Omit<NewFamily, 'grant'>,
): Begun => ({ family, client, subject, business: businessOf(scope), asOf, begunAt: authTime * 1000 })

const FORM = 'v2'

const TOKEN = /^v2\.([\w-]{8})\.([\w-]{22})\.([1-9][0-9]{0,8})\.([\w-]{43})$/

/** Whether a text has the form of these tokens. Older versions made tokens without dots (`OLDER_TOKEN`). */
export const isNumbered = (token: string): boolean => token.startsWith(`${FORM}.`)

function tokenOf(family: string, { generation, salt }: Numbering, { deriver }: FamilyDeps): string {
  const mac = macOf(family, generation, salt, deriver)
  return [FORM, deriver.secretId, family, generation, mac].join('.')
}

/** None of the parts has a dot, so no two tokens have the same text. */
const macOf = (family: string, number: number, salt: string, deriver: FamilyDeps['deriver']): string =>
  deriver.derive([FORM, family, number, salt].join('.'))

/** Where the record of a family is looked up, for the token of this number. */
type FamilySource = (family: string, number: number) => Promise<Entry | undefined>

async function findNumbered(
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

/** A genuine token, judged by its family's record; undefined if a rule has ended the family. */
function readFamily(
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
 * answer counts for nothing: the client got 503, though the use may have been stored.
 */
function isWithinGrace(usedAt: number | undefined, { clock, config, store }: FamilyDeps): boolean {
  if (usedAt === undefined) return false
  const age = Math.abs(clock.now() - usedAt) - (store.silentSince?.(usedAt) ?? 0)
  return age < config.refreshToken.grace
}

/**
 * Refresh tokens that version 0.1.0 gave: 43 characters without meaning, each with a record of its own. They work until
 * they expire or their family ends. The next token of such a family is number 1 of the new form; from then
 * on the salt of the family names the older token that it comes from. None is made any more.
 *
 * `refresh_token`, by the SHA-256 of the token: the OlderRecord. `usedAt` is set if an older version has used it: then its
 * successor is HMAC(server secret, token), in the older form too.
 */
export const OLDER_TOKEN = 'refresh_token'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
type OlderRecord = {
  readonly family: string
}

/** The key of a token's record: its hash, because the token itself is never stored. */
export const olderKey = (token: string): string => hash('sha256', token, 'base64url')

async function findOlder(
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

/** Records that are remembered: about 1 kB each. */
const LIMIT = 5000

/**
 * The records that this process has written last. Their clients often come to it again, and then the store needs to be asked
 * only for the write. Another process may have changed or removed such a record meanwhile. So what is remembered serves for
 * a write that fails in the store then, and for nothing else.
 */
export class RememberedRecords {
  /** By key, the one written last at the end. */
  readonly #entries = new Map<string, Entry>()

  /** A record after it was written. */
  remember(entry: Entry): void {
    this.forget(entry.key)
    this.#entries.set(entry.key, entry)
    if (this.#entries.size <= LIMIT) return
    const [oldest] = this.#entries.keys()
    if (oldest !== undefined) this.forget(oldest)
  }

  forget(key: string): void {
    this.#entries.delete(key)
  }

  /** @param now milliseconds since the epoch: a record that has expired is not found */
  recall(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    return entry.expiresAt === undefined || entry.expiresAt > now ? entry : undefined
  }
}
