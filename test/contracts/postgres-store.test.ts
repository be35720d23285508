import { describe } from 'vitest'
import { planPostgres } from '../../src/stores/postgres/config.ts'
import { PostgresLink } from '../../src/stores/postgres/link.ts'
import { PostgresStore } from '../../src/stores/postgres/store.ts'
import { needing } from '../support/machine.ts'
import { makeTables, sharedPostgres } from '../support/postgres.ts'
import { describeStore, type StorePlace } from './store.contract.ts'

/** A schema of its own in the cluster of the run, or in the database that a URL names. */
async function place(user: string, elsewhere?: string): Promise<StorePlace> {
  const cluster = elsewhere === undefined ? await sharedPostgres() : { url: () => elsewhere }
  const schema = makeTables(cluster)
  const plan = planPostgres({
    url: cluster.url(user),
    schema,
    connections: 4,
    deadline: 10_000,
    maxAge: 900_000,
    migrate: 'auto',
    preparedStatements: true,
  })
  return { open: async (clock) => PostgresStore.open(await PostgresLink.open(plan), clock) }
}

describe('with a Postgres', needing('postgresql'), () => {
  describeStore({ name: 'Postgres store', durable: true, place: () => place('postern') })
  describeStore({
    name: 'Postgres store at isolation level SERIALIZABLE',
    durable: true,
    place: () => place('serializable'),
  })

  // CockroachDB, YugabyteDB, or a Postgres that somebody else runs: deploy/nodes/README.md.
  const elsewhere = process.env['POSTERN_TEST_STORE_URL']
  if (elsewhere !== undefined)
    describeStore({
      name: 'Postgres store at POSTERN_TEST_STORE_URL',
      durable: true,
      place: () => place('', elsewhere),
    })
})
