import { describe } from 'vitest'
import { needing } from '../../support/machine.ts'
import { postgresPlace } from './support/store-places.ts'
import { describeStore } from '../../support/suites/store.contract.ts'

// At SERIALIZABLE: test/extensions/postgres/serializable-store.interop.test.ts.
describe('with a Postgres', needing('postgresql'), () => {
  describeStore({ name: 'Postgres store', durable: true, place: () => postgresPlace('postern') })

  // CockroachDB, YugabyteDB, or a Postgres that somebody else runs: deploy/nodes/README.md.
  const elsewhere = process.env['POSTERN_TEST_STORE_URL']
  if (elsewhere !== undefined)
    describeStore({
      name: 'Postgres store at POSTERN_TEST_STORE_URL',
      durable: true,
      place: () => postgresPlace('', elsewhere),
    })
})
