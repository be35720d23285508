import { describe, expect, it, onTestFinished } from 'vitest'
import { needing } from '../../support/machine.ts'
import { startNodes } from './support/nodes.ts'
import { ownPostgres, query, sharedPostgres, type PostgresCluster } from '../../support/postgres.ts'
import { basic } from '../../support/tokens.ts'

// T3.8: the way to the database breaks in the middle of a login, at each message to it in turn. Nobody is shut out by the turn
// of an attempt that nobody ended, and no right password is told to be wrong.

/** Statements that a node asks of itself, and not for a login. */
const OF_THE_NODE = /^(changes|clock|node_.*|running|ran|hold|purge_.*|page.*|lockout_renew|budget_.*|meta)$/
/** A login that waits for a lease that lapses is long done by then, and one that waits for half a minute is not. */
const SOON = { timeout: 30_000, interval: 50 }

async function startNode(cluster: PostgresCluster) {
  const started = await startNodes(cluster, { count: 1, server: 'trustedProxies: [127.0.0.1]' })
  onTestFinished(() => started.close())
  const node = started.nodes[0]!
  let network = 0
  const login = async (password = 'alice-password', signal?: AbortSignal): Promise<number> => {
    const answer = await fetch(`${node.authUrl}/connect/token`, {
      method: 'POST',
      ...(signal && { signal }),
      headers: { Authorization: basic('acme-books'), 'X-Forwarded-For': `198.51.${network}.7` },
      body: new URLSearchParams({
        ...{ grant_type: 'password', username: 'alice', password },
        scope: 'openid offline_access target:b/ACME',
      }),
    })
    await answer.arrayBuffer()
    return answer.status
  }
  await login()
  const { proxy } = node
  /** The next login comes from a network that is new to the user, so that failures from everywhere count. */
  const move = (): void => void (network += 1)
  /** Calls `act` with the name of each statement of a login, and its number from 0. */
  const onStatements = (act: (statement: string, at: number) => void): void => {
    let at = 0
    proxy.asked = (statement) => {
      if (!OF_THE_NODE.test(statement)) act(statement, at++)
    }
  }
  const points: string[] = []
  onStatements((statement) => points.push(statement))
  move()
  await login()
  move()
  return { login, move, proxy, onStatements, points: [...points], schema: started.schema }
}

describe('C6.3.5 C11.7.7 a login whose way to the database breaks', needing('postgresql'), () => {
  it('T3.8 at any of its messages, when the database has carried it out, is followed by one that succeeds', async () => {
    const { login, move, proxy, onStatements, points } = await startNode(await sharedPostgres())
    expect(points).toEqual(expect.arrayContaining(['lockout_take', 'lockout_count', 'lockout_end']))
    for (const point of points.keys()) {
      onStatements((statement, at) => {
        if (at === point) proxy.lose(statement)
      })
      proxy.hasLost = () => proxy.cut()
      expect([200, 503]).toContain(await login())
      proxy.hasLost = () => undefined
      proxy.mend()
      await expect.poll(() => login(), SOON).toBe(200)
      move()
    }
  }, 240_000)

  it('T3.8 at any of its messages, while Postgres is killed, is followed by one that succeeds', async () => {
    const cluster = await ownPostgres()
    const { login, move, onStatements, points } = await startNode(cluster)
    for (const point of points.keys()) {
      let killed: Promise<void> | undefined
      onStatements((_statement, at) => {
        if (at === point) killed = cluster.kill()
      })
      expect([200, 503]).toContain(await login())
      await killed
      await cluster.start()
      await expect.poll(() => login(), SOON).toBe(200)
      move()
    }
  }, 240_000)

  it('T3.8 counts the wrong password of a client that has gone, as it counts any other', async () => {
    const cluster = await sharedPostgres()
    const { login, proxy, schema } = await startNode(cluster)
    for (const failures of [1, 2, 3]) {
      const leaving = new AbortController()
      proxy.asked = (statement) => {
        if (statement === 'lockout_take') leaving.abort()
      }
      await expect(login('wrong', leaving.signal)).rejects.toThrow('abort')
      await expect
        .poll(() => query(cluster, `SELECT max(failures) FROM ${schema}.lockout`), SOON)
        .toBe(String(failures))
    }
  })
})
