import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { SqliteStore } from '../../../src/state/stores/sqlite/sqlite.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { describeStore } from '../../support/suites/store.contract.ts'

describeStore({
  name: 'SQLite store',
  durable: true,
  async place() {
    const path = join(await dataFolder(), 'postern.sqlite')
    return {
      open: (clock) =>
        SqliteStore.open({ path, synchronous: 'normal', maxSize: undefined, deadline: 10_000 }, clock),
      empty: () => {
        // Its thread may still write something.
        using db = new DatabaseSync(path, { timeout: 10_000 })
        db.exec(`BEGIN IMMEDIATE;
          DELETE FROM record; DELETE FROM counter; DELETE FROM change; DELETE FROM sqlite_sequence;
          UPDATE running SET ms = 0;
          COMMIT`)
      },
    }
  },
})
