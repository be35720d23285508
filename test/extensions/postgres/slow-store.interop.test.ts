import pg from 'pg'
import { describe, it, onTestFinished } from 'vitest'
import { needing } from '../../support/machine.ts'
import { sharedPostgres } from '../../support/postgres.ts'
import { expectPatience } from '../../support/slow-writes.ts'
import { startNodes } from './support/nodes.ts'

describe('T5.5 a store that takes 3 s makes logins, refreshes and revocations slow, and fails none', () => {
  it('in a Postgres whose tables another session has locked', needing('postgresql'), async () => {
    const cluster = await sharedPostgres()
    const started = await startNodes(cluster, { count: 1 })
    onTestFinished(() => started.close())
    const [node] = started.nodes
    const client = new pg.Client({ connectionString: cluster.url() })
    await client.connect()
    onTestFinished(() => client.end())
    await expectPatience(node!, {
      begin: async () => {
        const tables = ['record', 'feed'].map((table) => `${started.schema}.${table}`)
        // As a disk that does not take commits: what is there is read all the same.
        await client.query(`BEGIN; LOCK TABLE ${tables.join(', ')} IN EXCLUSIVE MODE`)
        return { end: () => client.query('COMMIT') }
      },
    })
  })
})
