/** Who is told that a login has ended (C6.3.3a), and the notices that wait in the store to be sent. */
import { hash } from 'node:crypto'
import type { LogoutNotices } from '../../base/contracts/people/logouts.ts'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Entry, NewRecord, PageQuery, Store, StoredValue } from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { newOrderedId } from '../../base/kernel/ids.ts'
import type { IdentityConfig } from '../dependencies/schema.ts'

/**
 * Kind of record: a client that got an id_token of a session, or of a user without one (password grant). The key begins
 * with the `sid`. It has the day too, so that a session that is renewed each day is never without a record: one that is there
 * already stays as it is, and so does its end.
 */
export const LOGOUT_PARTY = 'logout_party'

/** Kind of record: a notice to one client. It is kept until it has arrived or was tried for the last time. */
export const DELIVERY = 'delivery'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
type PartyRecord = {
  readonly client: string
  readonly subject: string
  readonly sid?: string
}

export type DeliveryRecord = PartyRecord & {
  /** Tries that have failed. */
  readonly failed: number
  /**
   * When it is to be sent, in milliseconds since the epoch. While it is being sent: when another process may try, because
   * the one that sends has died.
   */
  readonly dueAt: number
}

/** A notice that waits, as the store has it. */
export interface Delivery extends Pick<Entry, 'key' | 'version'> {
  readonly value: DeliveryRecord
}

export const deliveryOf = ({ key, version, value }: Entry): Delivery => ({
  key,
  version,
  value: value as StoredValue & DeliveryRecord,
})

const DAY = 86_400_000

/** The `sid` of a login without a session. No real one is so short. */
const NO_SESSION = '-'

const digestOf = (...parts: readonly string[]): string => hash('sha256', JSON.stringify(parts), 'base64url')

interface PartyParts {
  readonly clock: Clock
  readonly config: Pick<IdentityConfig, 'session' | 'refreshToken'>
}

/** Whether a client is told when a login ends. It then gets the `sid` in id_tokens. */
export const isNotified = ({ backchannelLogoutUri }: Pick<Client, 'backchannelLogoutUri'>): boolean =>
  backchannelLogoutUri !== undefined

/** The record that is stored with the session or family of an id_token. It outlives both. */
export function partyOf(
  {
    client,
    subject,
    sid,
  }: { readonly client: string; readonly subject: string; readonly sid?: string | undefined },
  { clock, config }: PartyParts,
): NewRecord {
  const now = clock.now()
  const value: PartyRecord = { client, subject, ...(sid !== undefined && { sid }) }
  return {
    kind: LOGOUT_PARTY,
    key: [sid ?? NO_SESSION, digestOf(client, subject), Math.floor(now / DAY)].join('.'),
    value,
    expiresAt: now + Math.max(config.session.lifetime, config.refreshToken.lifetime) + DAY,
    indexes: { client, subject },
  }
}

type QueueStore = Pick<Store, 'create' | 'list' | 'pageBy' | 'remove'>

/** Records of a page. */
const PAGE = 100

export class LogoutQueue implements LogoutNotices {
  readonly #store: QueueStore
  readonly #clock: Clock
  /** Called with each notice that this process has stored. The sender sets it. */
  queued: (delivery: Delivery) => void = () => undefined

  constructor(store: QueueStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  async endSession(sid: string): Promise<void> {
    const page = (after: string | undefined): Promise<readonly Entry[]> =>
      this.#store.list(LOGOUT_PARTY, { after, limit: PAGE, prefix: `${sid}.` })
    // One session has one notice for a client, however often it is ended at the same time.
    for await (const party of this.#parties(page)) await this.#queue(digestOf(sid, party.client), party)
  }

  async endSubject(subject: string | undefined): Promise<() => Promise<void>> {
    const where = subject === undefined ? {} : { subject }
    const keys: string[] = []
    const page = async (after: string | undefined): Promise<readonly Entry[]> => {
      const entries = await this.#store.pageBy(LOGOUT_PARTY, where, {
        after,
        limit: PAGE,
      } satisfies PageQuery)
      keys.push(...entries.map(({ key }) => key))
      return entries
    }
    for await (const { client, subject: of } of this.#parties(page))
      await this.#queue(newOrderedId(this.#clock.now()), { client, subject: of })
    return async () => {
      for (const key of keys) await this.#store.remove(LOGOUT_PARTY, key)
    }
  }

  /** Each client once for each user. */
  async *#parties(
    page: (after: string | undefined) => Promise<readonly Entry[]>,
  ): AsyncGenerator<PartyRecord> {
    const seen = new Set<string>()
    let entries: readonly Entry[] = []
    do {
      entries = await page(entries.at(-1)?.key)
      for (const { value } of entries) {
        const party = value as StoredValue & PartyRecord
        const one = digestOf(party.client, party.subject)
        if (!seen.has(one)) yield party
        seen.add(one)
      }
    } while (entries.length === PAGE)
  }

  async #queue(key: string, party: PartyRecord): Promise<void> {
    const value: DeliveryRecord = { ...party, failed: 0, dueAt: this.#clock.now() }
    const { client, subject } = party
    if (await this.#store.create(DELIVERY, key, { value, indexes: { client, subject } }))
      this.queued({ key, version: 1, value })
  }
}
