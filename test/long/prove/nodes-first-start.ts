/**
 * Nodes that start at the same moment on a Postgres that none has used: how many keys of each generation there are then,
 * how many key sets they publish, and how many secrets of refresh tokens they use (one of each is right). At last, what
 * a node with another seal says. `node test/long/prove/nodes-first-start.ts [ROUNDS] [NODES]`
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/free-port.ts'
import { drawSchema, PostgresCluster, query } from '../../support/postgres.ts'
import { sealKey } from '../../support/seal-key.ts'
import { ROOT, type SpawnedPostern, spawnPostern } from '../../support/spawn-postern.ts'
import { issueToken } from '../../support/tokens.ts'

const rounds = Number(process.argv[2] ?? 5)
const nodes = Number(process.argv[3] ?? 10)

const folder = mkdtempSync(join(tmpdir(), 'postern-first-start-'))
const cluster = new PostgresCluster(mkdtempSync(join(tmpdir(), 'postern-postgres-')), await freePort())
const SEAL = sealKey('right')
const ENVIRONMENT = { SEAL: SEAL.key, OTHER_SEAL: sealKey('other').key, ADMIN_TOKEN: 'x'.repeat(40) }

/** A configuration of nodes that share a schema. */
function configured(schema: string, seal: { readonly id: string; readonly key: object }): string {
  const store = { kind: 'postgres', url: cluster.url(), schema, connections: 2, seal: [seal] }
  const file = join(folder, `${schema}-${seal.id}.json`)
  const configuration = {
    extends: join(ROOT, 'config/upstream.yaml'),
    store,
    admin: { token: { env: 'ADMIN_TOKEN' } },
    server: { timeouts: { lameDuck: '0s', silence: '0s' } },
  }
  writeFileSync(file, JSON.stringify(configuration))
  return file
}

const spawned = (config: string): Promise<SpawnedPostern> =>
  spawnPostern({ config, environment: ENVIRONMENT })

async function publishedBy({ baseUrl }: SpawnedPostern): Promise<string> {
  const response = await fetch(`${baseUrl}/.well-known/jwks.json`)
  const { keys } = (await response.json()) as { keys: readonly { kid: string }[] }
  return keys
    .map(({ kid }) => kid)
    .sort()
    .join(' ')
}

/** The part of a refresh token that names its secret. */
async function secretOf(node: SpawnedPostern): Promise<string> {
  const { refresh_token = '' } = await issueToken(node, { scope: 'openid offline_access' })
  return refresh_token.split('.')[1] ?? 'none'
}

async function round(): Promise<{ readonly schema: string; readonly right: boolean }> {
  const schema = drawSchema()
  const config = configured(schema, { id: 'right', key: { env: 'SEAL' } })
  const begun = performance.now()
  const all = await Promise.all(Array.from({ length: nodes }, () => spawned(config)))
  const took = performance.now() - begun
  const sets = new Set(await Promise.all(all.map(publishedBy)))
  const secrets = new Set(await Promise.all(all.map(secretOf)))
  await Promise.all(all.map((node) => node.stop()))
  const kept = query(cluster, `SELECT key FROM ${schema}.record WHERE kind = 'signing_key' ORDER BY key`)
  const right = sets.size === 1 && secrets.size === 1 && kept === 'ES256-1\nRS256-1'
  console.log(
    `${nodes} nodes in ${(took / 1000).toFixed(1)} s: keys ${kept.replace('\n', ', ')}; key sets ${sets.size}; secrets ${secrets.size}`,
  )
  return { schema, right }
}

// Postgres is not waited for by Node itself.
const alive = setInterval(() => undefined, 60_000)
try {
  cluster.create()
  await cluster.start()
  let right = 0
  let last = ''
  for (let count = 0; count < rounds; count++) {
    const done = await round()
    if (done.right) right += 1
    last = done.schema
  }
  console.log(`one key a generation and one secret in ${right} of ${rounds} rounds`)
  const wrong = configured(last, { id: 'other', key: { env: 'OTHER_SEAL' } })
  const said = await spawned(wrong).then(
    async (node) => `it serves, with exit code ${await node.stop()}`,
    (thrown: unknown) => String(thrown),
  )
  console.log(`with another seal: ${said}`)
  process.exitCode = right === rounds && said.includes('the seal right') ? 0 : 1
} finally {
  await cluster.remove()
  clearInterval(alive)
  rmSync(folder, { recursive: true, force: true })
}
