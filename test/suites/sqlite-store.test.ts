import { join } from 'node:path'
import { SqliteStore } from '../../src/stores/sqlite.ts'
import { dataFolder } from '../support/data-folder.ts'
import { describeStore } from './store.contract.ts'

describeStore({
  name: 'SQLite store',
  durable: true,
  async place() {
    const path = join(await dataFolder(), 'postern.sqlite')
    return {
      open: (clock) =>
        SqliteStore.open({ path, synchronous: 'normal', maxSize: undefined, deadline: 10_000 }, clock),
    }
  },
})
