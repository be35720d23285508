import { stateOf } from './errors.ts'
import type { PostgresLink } from './link.ts'
import { tables } from './schema.ts'
import { reading } from './statement.ts'

/** Another process has made it at the same moment: names of schemas, tables and types, and rows of Postgres' catalogue. */
const MADE_MEANWHILE = new Set(['42P06', '42P07', '42710', '23505'])
const ATTEMPTS = 5

/** Makes what is missing of the tables. Several processes may do so at once. */
export async function ensureTables(link: PostgresLink): Promise<void> {
  for (const [at, sql] of tables(link.plan.schema).entries()) await makeOne(link, `table_${at}`, sql)
}

async function makeOne(link: PostgresLink, name: string, sql: string): Promise<void> {
  for (let left = ATTEMPTS; ; left -= 1)
    try {
      await link.run(reading(name, sql), [])
      return
    } catch (thrown) {
      if (left === 0 || !MADE_MEANWHILE.has(stateOf(thrown) ?? '')) throw thrown
    }
}
