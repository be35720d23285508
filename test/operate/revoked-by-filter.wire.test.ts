/** What each filter of a revocation ends, on each kind of store (C6.3.3). */
import { describe } from 'vitest'
import type { StoreConfig } from '../../src/state/stores/schema.ts'
import { PATIENT_STORE } from '../support/patient-store.ts'
import { revocationsOn } from '../support/suites/revocations.contract.ts'

const STORES: readonly (readonly [string, StoreConfig])[] = [
  ['memory', { kind: 'memory' }],
  ['SQLite', PATIENT_STORE],
]

describe.each(STORES)('on a store of kind %s', (_name, store) => revocationsOn(() => store))
