/** Kinds of stores that extensions add: stores that several nodes share. */
import type { TSchema } from '../../base/config/schema.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { Diagnosis } from '../../base/kernel/diagnosis.ts'
import type { OpenOptions, TroubleListener } from './link/store-error.ts'

/** A section `store`, with its `kind`; read by the schema of its kind. */
export interface StoreSection {
  readonly kind: string
}

/** A kind of store. Promises reject with StoreError if the store cannot be used. */
export interface AddedStoreKind {
  readonly schema: TSchema
  /** How many connections each process opens. */
  readonly connections: (section: StoreSection) => number
  /** Where the store is, for people: no user, no password. */
  readonly location: (section: StoreSection) => string
  /** How it is backed up, in place of `postern backup`. */
  readonly backup: string
  /** Waits for what another has to make before it can be opened, and reports that it waits. */
  readonly admit: (section: StoreSection, onTrouble: TroubleListener) => Promise<void>
  readonly open: (section: StoreSection, clock: Clock, options: OpenOptions) => Promise<Store>
  /** Opens it so that nothing is made or migrated. */
  readonly openToRead: (section: StoreSection, clock: Clock, options?: OpenOptions) => Promise<Store>
  /** Findings of an attempt to connect. @param processes those of a node that have connections */
  readonly diagnose: (section: StoreSection, processes: number) => Promise<readonly Diagnosis[]>
}
