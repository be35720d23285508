import { atEnd } from '../../../support/shared.ts'
import { systemClock } from '../../../../src/base/kernel/clock.ts'
import { openPostgresToRead } from '../../../../src/extensions/postgres/open.ts'
import { runVerb } from '../../../support/command-line.ts'
import { configFiles } from '../../../support/config-files.ts'
import { dataFolder } from '../../../support/data-folder.ts'
import { drawSchema, query, sharedPostgres } from '../../../support/postgres.ts'
import { ROOT, ENDS_AT_ONCE } from '../../../support/spawn-postern.ts'
import { postern } from '../../../support/start-postern.ts'

/** 32 bytes in base64. */
export const SEAL = Buffer.alloc(32, 7).toString('base64')

export interface PlaceOptions {
  /** Of the database. Default: that of the whole run. */
  readonly url?: string
  /** The schema of another place. */
  readonly schema?: string
  readonly environment?: Readonly<Record<string, string>>
}

/** Commands and services on a configuration whose store is a schema of its own, in which there is nothing yet. */
export async function placeOnPostgres({ url, schema = drawSchema(), environment = {} }: PlaceOptions = {}) {
  const data = await dataFolder()
  const cluster = await sharedPostgres()
  const file = configFiles({
    'node.yaml': `
extends: ${ROOT}/config/upstream.yaml
admin: { token: { env: POSTERN_ADMIN_TOKEN } }
store:
  kind: postgres
  url: '${url ?? cluster.url()}'
  schema: ${schema}
  seal: [{ id: test, key: { env: SEAL } }]
${ENDS_AT_ONCE}
`,
  })('node.yaml')
  const env = {
    POSTERN_DATA: data,
    POSTERN_CONFIG: file,
    POSTERN_ADMIN_TOKEN: 'a-token-of-this-test-0123456789',
    SEAL,
    ...environment,
  }
  return {
    ...{ cluster, schema, data },
    sql: (sql: string) => query(cluster, sql.replaceAll('SCHEMA.', `${schema}.`)),
    run: (line: string) => runVerb(line.split(' '), { env }),
    /** The store itself, opened to be read. */
    store: async () => {
      const settings = { url: cluster.url(), schema, connections: 2, deadline: 10_000, maxAge: 1000 }
      const config = { ...settings, migrate: 'never', preparedStatements: true } as const
      const store = await openPostgresToRead(config, systemClock)
      atEnd(() => store.close())
      return store
    },
    serve: () => postern({ file, data, environment: env }),
  }
}
