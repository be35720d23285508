import { describe, expect, it } from 'vitest'
import type { PostgresConfig } from '../../../src/extensions/postgres/schema.ts'
import { type Migration, migrate, MIGRATIONS } from '../../../src/extensions/postgres/migrations.ts'
import { withLongStatements } from '../../../src/extensions/postgres/open.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { postForm } from '../../support/oauth.ts'
import { placeOnPostgres } from './support/place-on-postgres.ts'
import { query } from '../../support/postgres.ts'
import { bearer, send } from '../../support/requests.ts'
import type { StartedPostern } from '../../support/start-postern.ts'
import { startUpstream } from '../../support/start-upstream.ts'
import { issueToken } from '../../support/tokens.ts'

const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'

/** As a later version may have: it adds to the tables that are used most, and takes that away at the end. */
const added = (schema: string, how: 'ADD COLUMN IF NOT EXISTS' | 'DROP COLUMN IF EXISTS'): string[] =>
  ['record', 'change', 'feed', 'lease', 'node'].map(
    (table) =>
      `ALTER TABLE ${schema}.${table} ${how} of_v2 ${how.startsWith('ADD') ? `text DEFAULT 'x'` : ''}`,
  )
const NEXT: Migration = {
  adds: (schema) => [
    ...added(schema, 'ADD COLUMN IF NOT EXISTS'),
    `CREATE INDEX IF NOT EXISTS record_of_v2 ON ${schema}.record (of_v2)`,
  ],
  takes: (schema) => added(schema, 'DROP COLUMN IF EXISTS'),
}
const VERSIONS = [...MIGRATIONS, NEXT]

/** Calls and refreshes a node again and again. `statuses` counts what it answers. */
async function keepBusy(node: StartedPostern) {
  const scope = 'openid fund.read offline_access target:b/ACME'
  let { access_token: access, refresh_token: refresh = '' } = await issueToken(node, { scope })
  const statuses = new Map<string, number>()
  const count = (what: string): unknown => statuses.set(what, (statuses.get(what) ?? 0) + 1)
  const life = { isOver: false }
  const callsDone = (async () => {
    while (!life.isOver)
      count(`call ${(await send(node, { target: FUNDS, headers: bearer(access) })).status}`)
  })()
  const refreshesDone = (async () => {
    while (!life.isOver) {
      const params = { grant_type: 'refresh_token', refresh_token: refresh }
      const { status, json } = await postForm(node, '/connect/token', { params })
      count(`refresh ${status}`)
      if (status === 200) [access, refresh] = [String(json.access_token), String(json.refresh_token)]
    }
  })()
  /** Resolves when it has refreshed so many times more. */
  const refreshed = async (times: number): Promise<void> => {
    const total = (statuses.get('refresh 200') ?? 0) + times
    // A third status is a fault, which the end tells.
    await eventually(() => {
      if (statuses.size <= 2) expect(statuses.get('refresh 200')).toBeGreaterThanOrEqual(total)
    })
  }
  const end = async () => {
    life.isOver = true
    await Promise.all([callsDone, refreshesDone])
    return [...statuses.keys()].toSorted()
  }
  return { refreshed, end }
}

describe('C11.7.4 nodes whose tables are migrated', needing('postgresql'), () => {
  it('C11.7.4 answer every call, before, meanwhile and after, and so does one that starts later', async () => {
    const upstream = await startUpstream()
    const environment = { UPSTREAM_URL: upstream.url }
    const one = await placeOnPostgres({ environment })
    const other = await placeOnPostgres({ environment, schema: one.schema })
    const nodes = [await keepBusy(await one.serve())]
    const config: PostgresConfig = {
      ...{ url: one.cluster.url(), schema: one.schema, connections: 1, deadline: 2000, maxAge: 1000 },
      ...{ migrate: 'auto', preparedStatements: true },
    }
    const all = (): Promise<unknown> => Promise.all(nodes.map((node) => node.refreshed(5)))

    await all()
    await withLongStatements(config, (link) => migrate(link, VERSIONS))
    nodes.push(await keepBusy(await other.serve()))
    await all()
    // As `--finish` does when no older node is left: these would keep it from that, for they know version 1.
    for (const statement of NEXT.takes(one.schema)) query(one.cluster, statement)
    await all()
    for (const node of nodes) expect(await node.end()).toEqual(['call 200', 'refresh 200'])
  })
})
