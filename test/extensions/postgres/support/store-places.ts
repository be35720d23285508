import { planPostgres } from '../../../../src/extensions/postgres/schema.ts'
import { PostgresLink } from '../../../../src/extensions/postgres/link.ts'
import { PostgresStore } from '../../../../src/extensions/postgres/store.ts'
import type { StorePlace } from '../../../support/suites/store.contract.ts'
import { makeTables, query, sharedPostgres } from '../../../support/postgres.ts'

/** A schema of its own in the cluster of the run, or in the database that a URL names. */
export async function postgresPlace(user: string, elsewhere?: string): Promise<StorePlace> {
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
  const removed = ['record', 'change', 'node', 'bucket', 'lockout'].map(
    (table) => `DELETE FROM ${schema}.${table}`,
  )
  const emptied = [...removed, `UPDATE ${schema}.feed SET last = 0, mark = '', ran = 0`].join(';')
  return {
    open: async (clock) => PostgresStore.open(await PostgresLink.open(plan), clock),
    empty: () => void query(cluster, emptied),
  }
}
