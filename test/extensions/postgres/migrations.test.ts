import { describe, expect, it, onTestFinished } from 'vitest'
import { planPostgres, type PostgresConfig } from '../../../src/extensions/postgres/schema.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import {
  finish,
  isUsable,
  migrate,
  type Migration,
  MIGRATIONS,
  readSchema,
} from '../../../src/extensions/postgres/migrations.ts'
import { awaitTables, withLongStatements } from '../../../src/extensions/postgres/open.ts'
import { needing } from '../../support/machine.ts'
import { query } from '../../support/postgres.ts'
import { drawSchema, sharedPostgres } from '../../support/postgres.ts'

async function opened() {
  const cluster = await sharedPostgres()
  const schema = drawSchema()
  const connect = async (): Promise<PostgresLink> => {
    const plan = planPostgres({
      ...{ url: cluster.url(), schema, connections: 1, deadline: 20_000, maxAge: 1000 },
      ...{ migrate: 'auto', preparedStatements: true },
    })
    const link = await PostgresLink.open(plan)
    onTestFinished(() => link.close())
    return link
  }
  const columns = (table: string): string =>
    query(
      cluster,
      `SELECT string_agg(column_name, ' ') FROM information_schema.columns
       WHERE table_schema = '${schema}' AND table_name = '${table}' AND column_name LIKE 'of_v%'`,
    )
  return { connect, columns, link: await connect() }
}

/** As a later version may have: it adds a column, and takes an older one away at the end. */
const NEXT: Migration = {
  adds: (schema) => [`ALTER TABLE ${schema}.lease ADD COLUMN IF NOT EXISTS of_v2 text`],
  takes: (schema) => [`ALTER TABLE ${schema}.node DROP COLUMN IF EXISTS of_v1`],
}
const FIRST: Migration = {
  adds: (schema) => [
    ...MIGRATIONS[0]!.adds(schema),
    `ALTER TABLE ${schema}.node ADD COLUMN IF NOT EXISTS of_v1 text`,
  ],
  takes: () => [],
}

describe('C11.7.4 a node that shall not make the tables', needing('postgresql'), () => {
  it('C11.7.4 waits until somebody has made them, and says so', async () => {
    const cluster = await sharedPostgres()
    const config: PostgresConfig = {
      ...{ url: cluster.url(), schema: drawSchema(), connections: 1, deadline: 20_000, maxAge: 1000 },
      ...{ migrate: 'never', preparedStatements: true },
    }
    const told: (string | undefined)[] = []
    const isWaiting = Promise.withResolvers<undefined>()
    const ready = awaitTables(config, (trouble) => {
      told.push(trouble)
      isWaiting.resolve(undefined)
    })
    await isWaiting.promise
    await withLongStatements(config, (link) => migrate(link))
    await ready
    expect(told).toEqual([expect.stringContaining('run `postern migrate`'), undefined])
  })
})

describe('C11.7.4 the versions of the tables', needing('postgresql'), () => {
  it('are made by one of ten that start at once, while the others wait', async () => {
    const { connect, link } = await opened()
    const links = await Promise.all(Array.from({ length: 10 }, connect))
    const migrated = await Promise.all(links.map((each) => migrate(each)))
    expect(migrated.filter(({ before }) => before.version === 0)).toHaveLength(1)
    expect(migrated.map(({ after }) => after.version)).toEqual(Array(10).fill(1))
    expect(await readSchema(link)).toEqual({ version: 1, readableFrom: 1 })
  })

  it('that follow leave the version before what it needs, until they are finished', async () => {
    const { link, columns } = await opened()
    await migrate(link, [FIRST])
    const migrations = [FIRST, NEXT]
    await migrate(link, migrations)
    expect([await readSchema(link), columns('lease'), columns('node')]).toEqual([
      { version: 2, readableFrom: 1 },
      'of_v2',
      'of_v1',
    ])
    await finish(link, migrations)
    expect([await readSchema(link), columns('lease'), columns('node')]).toEqual([
      { version: 2, readableFrom: 2 },
      'of_v2',
      '',
    ])
  })

  it('go on where a migration was broken off', async () => {
    const { link } = await opened()
    const broken: Migration = { adds: () => ['SELECT 1 FROM no_such_table_here'], takes: () => [] }
    await expect(migrate(link, [FIRST, broken])).rejects.toThrow()
    expect(await readSchema(link)).toEqual({ version: 1, readableFrom: 1 })
    await migrate(link, [FIRST, NEXT])
    expect((await readSchema(link)).version).toBe(2)
  })

  it('are refused to be finished before they are there', async () => {
    const { link } = await opened()
    await migrate(link, [FIRST])
    await expect(finish(link, [FIRST, NEXT])).rejects.toThrow(/of version 1, and this Postern knows 2/)
  })

  it.each([
    [{ version: 0, readableFrom: 0 }, false],
    [{ version: 1, readableFrom: 1 }, false],
    [{ version: 2, readableFrom: 1 }, true],
    [{ version: 3, readableFrom: 2 }, true],
  ])('%o can be used by who knows 2: %s', (state, usable) => {
    expect(isUsable(state, 2)).toBe(usable)
  })

  it('that need a later one are refused in words', () => {
    expect(() => isUsable({ version: 4, readableFrom: 3 }, 2)).toThrow(/knows version 3 or later/)
  })
})
