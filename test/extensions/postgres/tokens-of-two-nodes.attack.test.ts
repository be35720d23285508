import { describe, expect, it, onTestFinished } from 'vitest'
import type { Store } from '../../../src/base/contracts/records/store.ts'
import { FAMILY } from '../../../src/identity/stored/families.ts'
import { openNode, refreshAt, refreshThroughKills } from './support/killed-postgres.ts'
import { needing } from '../../support/machine.ts'
import { makeTables, ownPostgres, sharedPostgres } from '../../support/postgres.ts'
import type { JsonAnswer, TestIdentity } from '../../support/identity-under-test.ts'
import { obtainCode, redeem } from '../../support/user-agent.ts'

// T3.6: codes and refresh tokens that are used at several nodes at once, which share a Postgres.

const OFFLINE = { scope: 'openid fund.read offline_access target:b/ACME' }
const TIMES = 50

interface Nodes {
  readonly services: readonly [TestIdentity, TestIdentity]
  readonly store: Store
}

/** Two services with connections of their own. */
async function nodes(user: string): Promise<Nodes> {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const [one, other] = [await openNode(cluster.url(user), schema), await openNode(cluster.url(user), schema)]
  for (const { store } of [one, other]) onTestFinished(() => store.close())
  return { services: [one.service, other.service], store: one.store }
}

/** The same request so many times at once, at one node and the other by turns. */
const atOnce = (
  { services }: Nodes,
  ask: (service: TestIdentity) => Promise<JsonAnswer>,
): Promise<readonly JsonAnswer[]> =>
  Promise.all(Array.from({ length: TIMES }, (_, n) => ask(services[n % 2 === 0 ? 0 : 1])))

const ofStatus = (answers: readonly JsonAnswer[], status: number): readonly JsonAnswer[] =>
  answers.filter((answer) => answer.status === status)

describe.each(['postern', 'serializable'])(
  'T3.6 two nodes on a Postgres, as %s',
  needing('postgresql'),
  (user) => {
    it('C6.1.6 of 50 redemptions of a code one succeeds, and what it gave is ended', async () => {
      const both = await nodes(user)
      const { code } = await obtainCode(both.services[0], OFFLINE)
      const answers = await atOnce(both, (service) => redeem(service, code))
      expect(ofStatus(answers, 200)).toHaveLength(1)
      expect(ofStatus(answers, 400)).toHaveLength(TIMES - 1)
      expect(await both.store.list(FAMILY)).toEqual([])
    })

    it('C6.1.7 50 uses of a refresh token all give the same next one, which works at both', async () => {
      const both = await nodes(user)
      const { code } = await obtainCode(both.services[0], OFFLINE)
      const first = (await redeem(both.services[0], code)).json.refresh_token
      const answers = await atOnce(both, (service) => refreshAt(service, first))
      expect(ofStatus(answers, 200)).toHaveLength(TIMES)
      const [second, ...others] = new Set(answers.map(({ json }) => json.refresh_token as string))
      expect(others).toEqual([])
      const third = await refreshAt(both.services[1], second ?? '')
      expect((await refreshAt(both.services[0], third.json.refresh_token)).status).toBe(200)
      expect((await both.store.list(FAMILY)).map(({ value }) => value['generation'])).toEqual([4])
    })
  },
)

describe('T3.6 two nodes whose Postgres is killed', needing('postgresql'), () => {
  it('C6.1.7 nobody is logged out, however often (`npm run prove postgres-kills`)', async () => {
    const told = await refreshThroughKills(await ownPostgres(), 1)
    expect([...told.keys()].filter((status) => status !== 503)).toEqual([200])
  })
})
