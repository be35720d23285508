/** Clients that refresh at two nodes, by turns, while the Postgres of both is killed again and again. */
import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../../../src/base/kernel/clock.ts'
import { PostgresLink } from '../../../../src/extensions/postgres/link.ts'
import { PostgresStore } from '../../../../src/extensions/postgres/store.ts'
import {
  basic,
  formOf,
  type TestIdentity,
  type TestIdentityOptions,
} from '../../../support/identity-under-test.ts'
import { obtainCode, openFlow, redeem } from '../../../support/user-agent.ts'
import { makeTables, planTo, type PostgresCluster } from '../../../support/postgres.ts'

const CLIENTS = 6
/** Answers that the clients get together between two kills. */
const BETWEEN = 60
/** Milliseconds before a client tries again. */
const AGAIN_AFTER = 20

/** What the clients were answered, by status. */
export type Told = Map<number, number>

export const refreshAt = (service: TestIdentity, token: string) =>
  service.send({
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: basic('ledgerline') },
    body: formOf({ grant_type: 'refresh_token', refresh_token: token }),
  })

/** A node whose tokens are in this schema. */
export async function openNode(
  url: string,
  schema: string,
  options: TestIdentityOptions = {},
): Promise<{ readonly service: TestIdentity; readonly store: PostgresStore }> {
  const link = await PostgresLink.open(planTo(url, { schema }))
  const store = await PostgresStore.open(link, systemClock)
  return { store, service: openFlow({ ...options, deps: { clock: systemClock, store } }) }
}

const begin = async (service: TestIdentity): Promise<string> => {
  const { code } = await obtainCode(service, { scope: 'fund.read offline_access target:b/ACME' })
  return (await redeem(service, code)).json.refresh_token as string
}

/** Kills it so many times. Resolves with what the clients were told; the last answers come after the last kill. */
export async function refreshThroughKills(cluster: PostgresCluster, kills: number): Promise<Told> {
  const schema = makeTables(cluster)
  const nodes = [await openNode(cluster.url(), schema), await openNode(cluster.url(), schema)] as const
  const told: Told = new Map()
  const good = (): number => told.get(200) ?? 0
  let goOn = true
  const client = async (first: string): Promise<void> => {
    let token = first
    for (let n = 0; goOn; n += 1) {
      const { json, status } = await refreshAt(nodes[n % 2 === 0 ? 0 : 1].service, token)
      told.set(status, (told.get(status) ?? 0) + 1)
      if (status === 200) token = json.refresh_token as string
      else if (status === 503) await pause(AGAIN_AFTER)
      else return
    }
  }
  const families = await Promise.all(Array.from({ length: CLIENTS }, () => begin(nodes[0].service)))
  const ended = Promise.all(families.map(client))
  const more = async (): Promise<void> => {
    for (const enough = good() + BETWEEN; good() < enough && !told.has(400);) await pause(5)
  }
  for (let kill = 0; kill < kills; kill += 1) {
    await more()
    await cluster.kill()
    await cluster.start()
  }
  await more()
  goOn = false
  await ended
  for (const { store } of nodes) await store.close()
  return told
}
