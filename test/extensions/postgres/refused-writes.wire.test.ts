/** A shared store that can be read, and takes no writes. */
import { eventually } from '../../support/eventually.ts'
import { describe, expect, it } from 'vitest'
import { needing } from '../../support/machine.ts'
import { postForm } from '../../support/oauth.ts'
import { query, sharedPostgres } from '../../support/postgres.ts'
import { bearer } from '../../support/requests.ts'
import { onStore, sharedStore } from '../../support/shared-store.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { issueToken } from '../../support/tokens.ts'

const SCOPE = 'openid offline_access business.fund.list target:b/ACME'
const FULL = {
  name: 'store',
  reason:
    'it takes no writes: its disk is full (SQLSTATE 53100). Logins and refreshes fail, and data calls go on',
}

async function readiness({ adminUrl }: StartedPostern) {
  const response = await fetch(`${adminUrl}/health/ready`)
  return { code: response.status, ...((await response.json()) as object) }
}

/** Every write to a table is refused as on a full disk, until the returned function is called. */
async function fill(schema: string, table: string): Promise<() => void> {
  const cluster = await sharedPostgres()
  query(
    cluster,
    `CREATE FUNCTION ${schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device' USING ERRCODE = '53100';
     END $$;
     CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON ${schema}.${table} EXECUTE FUNCTION ${schema}.refuse()`,
  )
  return () => void query(cluster, `DROP FUNCTION ${schema}.refuse() CASCADE`)
}

describe('a shared store whose disk is full', needing('postgresql'), () => {
  it('C11.1 C11.7.2 is degraded though nobody logs in, since nodes tell each other that they are alive', async () => {
    const store = await sharedStore()
    const service = await postern({ change: onStore(store) })
    const { access_token } = await issueToken(service, { scope: SCOPE })
    const empty = await fill(store.schema, 'node')
    const told = { code: 200, status: 'ready', failing: [], degraded: [FULL] }
    await eventually(async () => expect(await readiness(service)).toEqual(told))
    const url = `${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
    expect((await fetch(url, { headers: bearer(access_token) })).status).toBe(200)
    empty()
    await eventually(async () => expect(await readiness(service)).toMatchObject({ degraded: [] }))
  })

  it('C11.1 is degraded where only what people do is refused', async () => {
    const store = await sharedStore()
    const service = await postern({ change: onStore(store) })
    const { refresh_token = '' } = await issueToken(service, { scope: SCOPE })
    const params = { grant_type: 'refresh_token', refresh_token }
    const refresh = () => postForm(service, '/connect/token', { params })
    const empty = await fill(store.schema, 'record')
    for (const { status, json } of [await refresh(), await refresh()])
      expect([status, json.error]).toEqual([503, 'temporarily_unavailable'])
    expect(await readiness(service)).toMatchObject({ code: 200, degraded: [FULL] })
    empty()
    expect((await refresh()).status).toBe(200)
    expect(await readiness(service)).toMatchObject({ degraded: [] })
  })
})
