/** Orders to erase a person's values in the trail of each node that shares a store (C12.2.3). */
import {
  type AuditedChange,
  type Operator,
  plainFacts,
  recordGiving,
} from '../../../base/contracts/records/audited-change.ts'
import type { RecordedErasure, Redacted } from '../../../base/contracts/records/audit-query.ts'
import type { AuditTrail } from '../../../base/contracts/records/audit.ts'
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { changeRecord, type Store, type StoredValue } from '../../../base/contracts/records/store.ts'
import { type After, after as systemAfter, type Clock } from '../../../base/kernel/clock.ts'
import { DAY_MS } from '../../../base/kernel/units.ts'
import { BEGINNING_KIND } from '../format/beginning.ts'
import { digestOfSubject } from '../read/personal.ts'

/**
 * Kind of record: an order, by the SHA-256 of the subject, so that the store does not have the subject. It stays until every trail
 * that the store remembered then has done it, at most 90 days: a node that is down does it when it runs again.
 */
export const ERASURE = 'audit_erasure'

/** A type alias, because an interface is not assignable to StoredValue. */
type ErasureOrder = {
  /** When it was given, in milliseconds since the epoch. A trail that began later has no values of the person. */
  readonly at: number
  readonly by: Pick<Operator, 'operator' | 'by' | 'reason'>
  /** The keys of the trails in which it was done. */
  readonly done: readonly string[]
}

/** How often a node looks for orders, in milliseconds. */
const PERIOD = 10_000
/** How long an order waits for nodes that may never come back, in milliseconds. */
const KEPT = 90 * DAY_MS

/** Whether a trail had begun at a moment, as the store remembers its beginning. */
const hasBegun = ({ signed }: StoredValue, at: number): boolean => !(Date.parse(String(signed)) > at)

interface SharedErasuresParts {
  readonly store: Pick<Store, 'find' | 'create' | 'replace' | 'remove' | 'list'>
  /** The key of this node's trail, as the store remembers its beginning. */
  readonly trail: string
  readonly redact: (digest: string, recorded: RecordedErasure) => Promise<Redacted>
  readonly audit: AuditTrail
  readonly recorder: Pick<Recorder, 'note'>
  readonly clock: Pick<Clock, 'now'>
  readonly after?: After | undefined
}

/** Gives orders, and carries out those of other nodes. Promises reject with Fault `identity_unavailable`. */
export class SharedErasures {
  readonly #parts: SharedErasuresParts
  #cancel: () => void = () => undefined
  #closed = false

  constructor(parts: SharedErasuresParts) {
    this.#parts = parts
    void this.#follow()
  }

  async give(subject: string, { operator, by, reason }: Operator): Promise<void> {
    const { clock, store } = this.#parts
    const at = clock.now()
    const order: ErasureOrder = { at, by: { operator, by, reason }, done: [] }
    const value = plainFacts(order)
    const key = digestOfSubject(subject)
    for (;;) {
      const { version } = (await store.find(ERASURE, key)) ?? {}
      const isGiven =
        version === undefined
          ? await store.create(ERASURE, key, { value, expiresAt: at + KEPT })
          : await store.replace(ERASURE, key, version, value, at + KEPT)
      if (isGiven) return
    }
  }

  /** It is done in this trail. Resolves with the nodes that still have to: host and address. */
  async done(digest: string): Promise<readonly string[]> {
    const { store, trail } = this.#parts
    const isGiven = await changeRecord(store, ERASURE, digest, (value) => {
      if (value === undefined) return undefined
      const order = value as ErasureOrder
      return { ...order, done: [...new Set([...order.done, trail])] }
    })
    // The node that did it last has removed the order.
    if (!isGiven) return []
    const trails = await store.list(BEGINNING_KIND)
    const order = await store.find(ERASURE, digest)
    if (order === undefined) return []
    const { at, done } = order.value as ErasureOrder
    const pending = trails.filter(
      ({ key, value }) => value['host'] !== '' && !done.includes(key) && hasBegun(value, at),
    )
    // Not one that was given again meanwhile.
    if (pending.length === 0) await store.remove(ERASURE, digest, order.version)
    return pending.map(({ value }) => String(value['host']))
  }

  close(): void {
    this.#closed = true
    this.#cancel()
  }

  /** Never rejects: what could not be done now is done later. */
  async #follow(): Promise<void> {
    try {
      const { store, trail } = this.#parts
      const own = await store.find(BEGINNING_KIND, trail)
      for (const { key: digest, value } of await store.list(ERASURE)) {
        const { at, by, done } = value as ErasureOrder
        const mayHave = own === undefined || hasBegun(own.value, at)
        if (mayHave && !done.includes(trail)) await this.#carryOut(digest, by)
      }
    } catch (cause) {
      this.#parts.recorder.note('warn', 'audit_erasure_failed', { cause })
    }
    if (!this.#closed) this.#cancel = (this.#parts.after ?? systemAfter)(PERIOD, () => void this.#follow())
  }

  async #carryOut(digest: string, by: ErasureOrder['by']): Promise<void> {
    const { audit, recorder, redact } = this.#parts
    const operator: Operator = { ...by, via: 'another node' }
    const redacted = await redact(digest, async (found, erase, subject) => {
      if (subject === undefined) return
      const change: AuditedChange = { event: 'audit.redacted', on: { subject }, change: plainFacts(found) }
      await recordGiving(audit, operator, change, erase)
    })
    await this.done(digest)
    recorder.note('info', 'audit_redacted', { ...redacted, ...operator })
  }
}
