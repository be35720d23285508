import { eventually } from '../support/eventually.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { needing } from '../support/machine.ts'
import { smallDisk } from '../support/small-disk.ts'
import { poolConfig, startPool } from '../support/worker-pool.ts'
import { bearer, expectFault, send } from '../support/requests.ts'
import { ENDS_AT_ONCE } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const UNWELL = { name: 'backend funds', reason: 'it does not answer as it should; its calls may fail' }

async function readiness(adminUrl: string) {
  const response = await fetch(`${adminUrl}/health/ready`)
  return { status: response.status, body: (await response.json()) as object }
}

describe('C11.1: parts that work badly', () => {
  it('C11.1: a backend that does not answer is told as degraded, without an address; the service stays ready', async () => {
    const upstream = await startUpstream((connection) => connection.reset())
    const gateway = await postern({
      config: 'upstream.yaml',
      keeps: 'nothing',
      environment: { UPSTREAM_URL: upstream.url },
    })
    const token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
    const well = { status: 200, body: { status: 'ready', failing: [], degraded: [] } }
    expect(await readiness(gateway.adminUrl)).toEqual(well)
    const call = () => send(gateway, { target: LIST, headers: bearer(token) })
    // The default of `ejection.failures`; a safe call is tried twice.
    for (let at = 0; at < 5; at++) expectFault(await call(), 'upstream_unreachable')
    const told = await readiness(gateway.adminUrl)
    expect(told).toEqual({ status: 200, body: { ...well.body, degraded: [UNWELL] } })
    expect(JSON.stringify(told)).not.toContain(String(upstream.port))
  })

  it(
    'C11.1: a data folder whose disk has little left is told as degraded, in the status too; the service stays ready',
    needing('a small disk'),
    async () => {
      const gateway = await postern({ data: (await smallDisk()).folder })
      const degraded = [
        {
          name: 'data folder',
          reason: expect.stringMatching(
            /^its disk has \d+ [KM]iB left: when it is full, nobody can log in or/,
          ),
        },
      ]
      const told = await readiness(gateway.adminUrl)
      expect(told).toEqual({ status: 200, body: { status: 'ready', failing: [], degraded } })
      const token = readFileSync(join(gateway.data, 'admin-token'), 'utf8').trim()
      const status = await fetch(`${gateway.adminUrl}/status`, { headers: bearer(token) })
      expect(await status.json()).toMatchObject({
        degraded,
        troubles: [expect.stringMatching(/^Works badly: data folder: its disk has /)],
        data: { bytes: expect.any(Number), freeBytes: expect.any(Number) },
      })
    },
  )

  it('C11.1: with several processes too, and no longer once the backend is well', async () => {
    let well = false
    const upstream = await startUpstream((connection) => connection.respond({ status: well ? 200 : 503 }))
    const check = '{ interval: 50ms, unhealthy: 1, healthy: 1 }'
    const pool = await startPool(
      poolConfig(upstream.url, `${ENDS_AT_ONCE}\naudit: { enabled: false }`).replace(
        upstream.url,
        `${upstream.url}, healthCheck: ${check}`,
      ),
    )
    const degraded = async () => (await readiness(pool.adminUrl)).body
    await eventually(async () => expect(await degraded()).toMatchObject({ degraded: [UNWELL] }))
    expect((await readiness(pool.adminUrl)).status).toBe(200)
    well = true
    await eventually(async () => expect(await degraded()).toMatchObject({ degraded: [] }))
  })
})
