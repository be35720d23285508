/** Who is told that a login has ended (C6.3.3a), and the notices that wait in the store to be sent. */
import { hash } from 'node:crypto'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Entry, NewRecord, PageQuery, Store, StoredValue } from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { newOrderedId } from '../../base/kernel/ids.ts'
import type { LogoutNotices, NoticeParts } from '../../identity/dependencies/logouts.ts'
import type { IdentityConfig } from '../../identity/dependencies/schema.ts'
import { type Delivery, DELIVERY, type DeliveryRecord, LOGOUT_PARTY, type PartyRecord } from './records.ts'
import { logoutUriOf } from './schema.ts'

const DAY = 86_400_000

/** The `sid` of a login without a session. No real one is so short. */
const NO_SESSION = '-'

const digestOf = (...parts: readonly string[]): string => hash('sha256', JSON.stringify(parts), 'base64url')

/** Records of a page. */
const PAGE = 100

export class LogoutQueue implements LogoutNotices {
  /** OpenID Connect Back-Channel Logout §2.1. */
  readonly metadata = { backchannel_logout_supported: true, backchannel_logout_session_supported: true }
  readonly #store: Store
  readonly #clock: Clock
  /** Called with each notice that this process has stored. The sender sets it. */
  queued: (delivery: Delivery) => void = () => undefined

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  readonly isNotified = (client: object): boolean => logoutUriOf(client) !== undefined

  /** It outlives the session and the family. */
  partiesOf(client: Client, subject: string, sid: string | undefined, config: IdentityConfig): NewRecord[] {
    if (!this.isNotified(client)) return []
    const now = this.#clock.now()
    const indexes = { client: client.id, subject }
    const value: PartyRecord = { ...indexes, ...(sid !== undefined && { sid }) }
    const key = [sid ?? NO_SESSION, digestOf(client.id, subject), Math.floor(now / DAY)].join('.')
    const expiresAt = now + Math.max(config.session.lifetime, config.refreshToken.lifetime) + DAY
    return [{ kind: LOGOUT_PARTY, key, value, expiresAt, indexes }]
  }

  waiting(subject: string): Promise<number> {
    return this.#store.countBy(DELIVERY, { subject })
  }

  async send(parts: NoticeParts): Promise<() => Promise<void>> {
    const { LogoutSender } = await import('./sender.ts')
    const sender = new LogoutSender({ ...parts, queue: this, store: this.#store, clock: this.#clock })
    return () => sender.stop()
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
