/**
 * The store remembers the last event of each signing key that the audit trail has (C12.3): no process records it again, after
 * a restart or at another node.
 */
import { changeRecord, type Store } from '../../../base/contracts/records/store.ts'

const KIND = 'audited_keys'
const KEY = 'own'

type EventStore = Pick<Store, 'find' | 'create' | 'replace'>

/** The last event of each key, by its id. */
export type RecordedEvents = { readonly [kid: string]: string }

interface ReadEvents {
  readonly events: RecordedEvents
  /** Resolves with false if another process has written meanwhile. Rejects with Fault `identity_unavailable`. */
  readonly replace: (events: RecordedEvents) => Promise<boolean>
}

/** Rejects with Fault `identity_unavailable`. */
export async function readRecordedEvents(store: EventStore): Promise<ReadEvents> {
  const entry = await store.find(KIND, KEY)
  return {
    events: (entry?.value ?? {}) as RecordedEvents,
    replace: (value) =>
      entry === undefined
        ? store.create(KIND, KEY, { value })
        : store.replace(KIND, KEY, entry.version, value),
  }
}

/** Resolves with false if another process has remembered the key before. Rejects with Fault `identity_unavailable`. */
export const rememberAnnounced = (kid: string, store: EventStore): Promise<boolean> =>
  changeRecord(store, KIND, KEY, (events = {}) =>
    events[kid] === undefined ? { ...events, [kid]: 'keys.announced' } : undefined,
  )
