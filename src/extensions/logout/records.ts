/** The records of the store by which clients are told that a login has ended. */
import type { Entry, StoredValue } from '../../base/contracts/records/store.ts'

/**
 * Kind of record: a client that got an id_token of a session, or of a user without one (password grant). The key begins
 * with the `sid`. It has the day too, so that a session that is renewed each day is never without a record: one that is there
 * already stays as it is, and so does its end.
 */
export const LOGOUT_PARTY = 'logout_party'

/** Kind of record: a notice to one client. It is kept until it has arrived or was tried for the last time. */
export const DELIVERY = 'delivery'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
export type PartyRecord = {
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
