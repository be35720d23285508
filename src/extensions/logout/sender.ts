/** Sends the notices that wait in the store (OpenID Connect Back-Channel Logout 1.0; C6.3.3a). */
import type { Client } from '../../base/contracts/people/people.ts'
import type { PageQuery, Store } from '../../base/contracts/records/store.ts'
import { type After, after as systemAfter, type Clock, epochSeconds } from '../../base/kernel/clock.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { outsideBudgets } from '../../base/kernel/store-budget.ts'
import type { NoticeParts } from '../../identity/dependencies/logouts.ts'
import { type OutboundAnswer, OutboundRefused } from '../../identity/keys/remote/outbound.ts'
import { idTokenAlgorithm } from '../../identity/tokens/signed-tokens.ts'
import { type Delivery, DELIVERY, deliveryOf, type DeliveryRecord } from './records.ts'
import { logoutUriOf } from './schema.ts'

/** How many notices a process sends at once, and how many of these to one client: a slow one must leave places (T5.20). */
const MOST_AT_ONCE = 16
const MOST_OF_CLIENT = 4
/** How long one try may take, in milliseconds. */
const TRY_MS = 5000
/** How long to wait for the next try after each failed one, in milliseconds. */
const RETRIES: readonly number[] = [5000, 30_000, 300_000]
/** How long a process holds a notice that it sends, in milliseconds. If it dies, another one takes over then. */
const CLAIM_MS = 15_000
/** How often a process looks for notices that others have left, in milliseconds. */
const LOOK_MS = 5000
/** One of the nodes that share a store looks: the one that holds this lease. */
const LEASE = 'deliveries'
/** How many notices a process remembers, and how many of these for one client. All others wait in the store alone. */
const MOST_WAITING = 1000
const MOST_WAITING_OF_CLIENT = 100
/** A look reads at most `PAGES` pages of records. The next look continues after them. */
const PAGE = 100
const PAGES = 20
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' }
/** How long a logout token is valid, in seconds. */
const TOKEN_LIFETIME = 120

/** How a try ended: `again` where a later one may arrive. */
type Result =
  | { readonly end: 'arrived' }
  | { readonly end: 'again' | 'refused'; readonly why: string; readonly detail?: string }

interface LogoutSenderParts extends NoticeParts {
  readonly queue: { queued: (delivery: Delivery) => void }
  readonly store: Pick<Store, 'hold' | 'list' | 'release' | 'remove' | 'replace'>
  readonly clock: Clock
  readonly after?: After
}

/**
 * Sends at once what this process has queued, and what others have left: who sends takes the record by compare-and-set. A
 * notice leaves the store when it has arrived, or was tried for the last time. So one may come twice, after a crash, and none
 * is lost.
 */
export class LogoutSender {
  readonly #parts: LogoutSenderParts
  readonly #after: After
  readonly #waiting = new Map<string, Delivery>()
  /** By client: how many are being sent. */
  readonly #sending = new Map<string, number>()
  readonly #tries = new Set<Promise<void>>()
  readonly #stopped = new AbortController()
  #cancelLook: () => void
  #cancelNext: () => void = () => undefined
  #lookedAt: string | undefined

  constructor(parts: LogoutSenderParts) {
    this.#parts = parts
    this.#after = parts.after ?? systemAfter
    parts.queue.queued = (delivery) => {
      // In a turn of its own, so that the end of a login waits for no notice.
      if (this.#keep(delivery)) this.#after(0, () => this.#sendDue())
    }
    this.#cancelLook = this.#after(0, () => this.#look())
  }

  /** Breaks off the notices that are being sent. They stay in the store. */
  async stop(): Promise<void> {
    this.#stopped.abort()
    this.#parts.queue.queued = () => undefined
    this.#cancelLook()
    this.#cancelNext()
    await Promise.allSettled(this.#tries)
    await this.#parts.store.release(LEASE).catch(() => undefined)
  }

  /** False where there are too many: it is found in the store later. */
  #keep(delivery: Delivery): boolean {
    const { client } = delivery.value
    if (this.#waiting.size >= MOST_WAITING) return false
    const ofClient = [...this.#waiting.values()].filter(({ value }) => value.client === client)
    if (ofClient.length >= MOST_WAITING_OF_CLIENT) return false
    this.#waiting.set(delivery.key, delivery)
    return true
  }

  #look(): void {
    const looked = outsideBudgets(() => this.#readStore())
      // The change feed tells operators that the store is out of reach.
      .catch(() => undefined)
      .then(() => {
        this.#tries.delete(looked)
        if (this.#stopped.signal.aborted) return
        this.#cancelLook = this.#after(LOOK_MS, () => this.#look())
        this.#sendDue()
      })
    this.#tries.add(looked)
  }

  async #readStore(): Promise<void> {
    const { clock, store } = this.#parts
    if (!(await store.hold(LEASE, 2 * LOOK_MS))) return
    for (let page = 0; page < PAGES; page += 1) {
      const entries = await store.list(DELIVERY, { after: this.#lookedAt, limit: PAGE } satisfies PageQuery)
      // Also what will soon be due: a retry, or what a process was sending that has died.
      for (const delivery of entries.map(deliveryOf))
        if (isDue(delivery.value, clock.now() + CLAIM_MS)) this.#keep(delivery)
      this.#lookedAt = entries.length < PAGE ? undefined : entries.at(-1)?.key
      if (this.#lookedAt === undefined) return
    }
  }

  #sendDue(): void {
    if (this.#stopped.signal.aborted) return
    const now = this.#parts.clock.now()
    let next = Number.POSITIVE_INFINITY
    for (const delivery of this.#waiting.values()) {
      const { client, dueAt } = delivery.value
      if (!isDue(delivery.value, now)) next = Math.min(next, dueAt - now)
      else if (this.#mayBegin(client)) this.#begin(delivery)
    }
    this.#cancelNext()
    if (next < Number.POSITIVE_INFINITY) this.#cancelNext = this.#after(next, () => this.#sendDue())
  }

  #mayBegin(client: string): boolean {
    const all = [...this.#sending.values()].reduce((sum, each) => sum + each, 0)
    return all < MOST_AT_ONCE && (this.#sending.get(client) ?? 0) < MOST_OF_CLIENT
  }

  #begin(delivery: Delivery): void {
    const { client } = delivery.value
    this.#waiting.delete(delivery.key)
    this.#sending.set(client, (this.#sending.get(client) ?? 0) + 1)
    const tried = outsideBudgets(() => this.#try(delivery))
      .catch((cause: unknown) => this.#parts.recorder.note('error', 'logout_notice_broke', { client, cause }))
      .then(() => {
        this.#tries.delete(tried)
        const left = (this.#sending.get(client) ?? 1) - 1
        if (left > 0) this.#sending.set(client, left)
        else this.#sending.delete(client)
        this.#sendDue()
      })
    this.#tries.add(tried)
  }

  async #try(waiting: Delivery): Promise<void> {
    const { clock, store } = this.#parts
    const { key, version, value } = waiting
    const taken: DeliveryRecord = { ...value, dueAt: clock.now() + CLAIM_MS }
    if (!(await store.replace(DELIVERY, key, version, taken))) return
    const { people } = this.#parts.identity()
    const client = await people.findClient(value.client)
    const url = client && logoutUriOf(client)
    if (client === undefined || url === undefined) {
      // Gone, disabled, or not told any more.
      await store.remove(DELIVERY, key, version + 1)
      return
    }
    const result = await this.#send(value, client, url)
    if (this.#stopped.signal.aborted) return
    await this.#settle({ key, version: version + 1, value }, result)
  }

  /** Rejects where no token can be made. */
  async #send(record: DeliveryRecord, client: Client, url: string): Promise<Result> {
    const body = new URLSearchParams({ logout_token: await this.#logoutToken(record, client) }).toString()
    const late = new AbortController()
    const cancel = this.#after(TRY_MS, () => late.abort())
    const signal = AbortSignal.any([this.#stopped.signal, late.signal])
    try {
      return resultOf(await this.#parts.identity().outbound({ url, headers: FORM, body, signal }))
    } catch (cause) {
      return cause instanceof OutboundRefused
        ? { end: 'refused', why: 'not_public', detail: cause.message }
        : { end: 'again', why: 'unreachable' }
    } finally {
      cancel()
    }
  }

  /** Back-Channel Logout §2.4: signed as the client's id_tokens, and made anew for each try. */
  async #logoutToken({ sid, subject }: DeliveryRecord, client: Client): Promise<string> {
    const { config, signer, urls } = this.#parts.identity()
    const issuedAt = epochSeconds(this.#parts.clock)
    const claims = {
      iss: urls.issuer,
      sub: subject,
      aud: client.id,
      iat: issuedAt,
      exp: issuedAt + TOKEN_LIFETIME,
      jti: newSecret(16),
      ...(sid !== undefined && { sid }),
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    }
    return (await signer.sign(claims, { typ: 'logout+jwt', algorithm: idTokenAlgorithm(client, config) }))
      .token
  }

  async #settle({ key, version, value }: Delivery, result: Result): Promise<void> {
    const { clock, recorder, store } = this.#parts
    const pause = RETRIES[value.failed]
    if (result.end === 'again' && pause !== undefined) {
      const next: DeliveryRecord = { ...value, failed: value.failed + 1, dueAt: clock.now() + pause }
      if (!(await store.replace(DELIVERY, key, version, next))) return
      recorder.count?.('logoutNotices', 'retried')
      // One that waits longer takes no place in memory: a look finds it when it is nearly due.
      if (pause < CLAIM_MS) this.#keep({ key, version: version + 1, value: next })
      return
    }
    // Several processes may have sent it, because one took longer than `CLAIM_MS`. Only one of them records it.
    if (await store.remove(DELIVERY, key, version)) this.#record(value, result)
  }

  #record({ client, sid, subject }: DeliveryRecord, result: Result): void {
    const { audit, recorder } = this.#parts
    const failure = result.end === 'arrived' ? undefined : result
    recorder.count?.('logoutNotices', failure === undefined ? 'arrived' : 'failed')
    if (failure !== undefined) {
      const { detail, why: reason } = failure
      recorder.note('warn', 'logout_notice_failed', { client, subject, reason, detail })
    }
    audit.note({
      event: 'logout.notified',
      outcome: failure === undefined ? 'success' : 'failed',
      reason: failure?.why,
      actor: { kind: 'service' },
      on: { kind: 'logout', id: sid, client, subject },
    })
  }
}

/** No notice waits longer than for its last try: the clock was set back. */
const isDue = ({ dueAt }: DeliveryRecord, now: number): boolean =>
  dueAt <= now || dueAt > now + 2 * Math.max(...RETRIES)

const ARRIVED: ReadonlySet<number> = new Set([200, 204])

/** A client that cannot take a notice now may take it later. A notice that it refuses or redirects is not sent again. */
function resultOf({ status }: OutboundAnswer): Result {
  if (ARRIVED.has(status)) return { end: 'arrived' }
  return { end: status >= 500 || status === 429 ? 'again' : 'refused', why: `answered_${status}` }
}
