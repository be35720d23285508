/** What each node of a shared store tells of the others: by this, alerts find those that serve something else. */
import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { query, sharedPostgres } from '../../support/postgres.ts'
import { bearer } from '../../support/requests.ts'
import { sharedStore } from '../../support/shared-store.ts'
import { postern, type StartedPostern } from '../../support/start-postern.ts'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

async function told({ adminUrl, data }: StartedPostern) {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
  const token = (await readFile(join(data, 'admin-token'), 'utf8')).trim()
  const { store } = (await (await fetch(`${adminUrl}/status`, { headers: bearer(token) })).json()) as {
    store: { nodes?: number; nodeConfiguration?: string }
  }
  const digest = /^postern_node_configuration\{digest="([^"]+)"\} 1$/mu.exec(metrics)?.[1]
  const nodes = /^postern_store_nodes (\d+)$/mu.exec(metrics)?.[1]
  expect(store).toMatchObject({ nodes: Number(nodes), nodeConfiguration: digest })
  return { digest, nodes: Number(nodes) }
}

describe('C11.5.5 the nodes of a shared store', needing('postgresql'), () => {
  it('C11.5.5 tell in status and metrics how many the store counts, and which have the same configuration', async () => {
    const store = await sharedStore()
    const node = (more: Partial<Configuration> = {}) =>
      postern({ keeps: 'nothing', change: (configuration) => ({ ...configuration, store, ...more }) })
    const [one, same, other] = [await node(), await node(), await node({ vendor: 'other' })]
    // All of them are one node here, since they share a process; another one is alive for ten seconds.
    const another = `INSERT INTO ${store.schema}.node
      SELECT 'another', version, config, facts, seen_at + 5000 FROM ${store.schema}.node`
    await eventually(async () => expect(await told(one)).toMatchObject({ nodes: 1 }))
    query(await sharedPostgres(), another)
    await eventually(async () => {
      const all = await Promise.all([one, same, other].map(told))
      expect(all.map(({ nodes }) => nodes)).toEqual([2, 2, 2])
      expect(all[1]!.digest).toBe(all[0]!.digest)
      expect(all[2]!.digest).not.toBe(all[0]!.digest)
    })
  })

  it('C11.5.5 are told of by none with a store of its own', async () => {
    const { adminUrl } = await postern({ keeps: 'store' })
    const metrics = await (await fetch(`${adminUrl}/metrics`)).text()
    expect(metrics).not.toMatch(/^postern_(node_configuration|store_nodes)/mu)
  })
})
