import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { describeStore } from '../../support/suites/store.contract.ts'

describeStore({
  name: 'memory store',
  durable: false,
  place: () => Promise.resolve({ open: (clock) => Promise.resolve(new MemoryStore(clock)) }),
})
