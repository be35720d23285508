/** Stores that several nodes share, with the keys that they keep. */
import type { Store } from '../../base/contracts/records/store.ts'
import type { KeyPlace } from '../../identity/keys/signing/key-place.ts'
import type { AddedStoreKind, StoreSection } from '../../state/stores/added-kinds.ts'

export type KeyStore = Pick<Store, 'list' | 'find' | 'create' | 'replace' | 'remove'>

export interface SharedStoreKind extends AddedStoreKind {
  /** The place of the service's keys: in the store. Rejects with KeyError if the section has no key that seals them. */
  readonly openKeys: (section: StoreSection, store: KeyStore) => Promise<KeyPlace>
}

/** By `kind`. */
export type SharedStoreKinds = ReadonlyMap<string, SharedStoreKind>
