/**
 * `node test/long/prove/memory-after-load.ts [workers]`: how much more memory a service holds 10 s after 300 logins by password, and
 * 10 s after 16 conversions of 1.5 MB at once, than when it was idle: anonymous pages of all its processes. 1 where that is
 * more than 40 MB, or 100 MB. Linux only.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { processTree } from '../load/cpu-time.ts'
import { ownMegabytes } from '../load/held-memory.ts'
import { postForm } from '../../support/oauth.ts'
import { ROOT, spawnPostern, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

const MOST_AFTER = { logins: 40, conversions: 100 }
const PAUSE = 10_000
const folder = mkdtempSync(join(tmpdir(), 'postern-memory-'))

const ONE = JSON.stringify({ Id: 1, Name: 'Member 1', Open: true, At: null, Price: 1.5, City: 'Perth' })
const answer = Buffer.from(
  `[${Array(Math.floor(1_500_000 / (ONE.length + 1)))
    .fill(ONE)
    .join(',')}]`,
)
const upstream = createServer((request, response) => {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': answer.length }
  request.resume().on('end', () => response.writeHead(200, headers).end(answer))
})
await once(upstream.listen(0, '127.0.0.1'), 'listening')
const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

// Two backends, since one has half of the places for conversions.
writeFileSync(
  join(folder, 'config.yaml'),
  `extends: ${join(ROOT, 'config/demo.yaml')}
${WITHOUT_WAITS}
workers: ${process.argv[2] ?? '1'}
backends:
  sample:
  one: { kind: http, target: '${target}' }
  other: { kind: http, target: '${target}' }
areas:
  fund-data: { backend: one }
  member-data: { backend: other }
actions:
  - { level: fund, area: fund-data, action: take, methods: { GET: { scopes: { any: [fund.read] } } } }
  - { level: fund, area: member-data, action: take, methods: { GET: { scopes: { any: [fund.read] } } } }
`,
)
const gateway = await spawnPostern({ config: join(folder, 'config.yaml') })

const held = (): number => ownMegabytes(processTree(gateway.pid))

async function logIn(): Promise<number> {
  const params = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: ALL_AT_ACME }
  return (await postForm(gateway, '/connect/token', { params })).status
}

async function convert(area: string, token: string): Promise<number> {
  const headers = { Authorization: `Bearer ${token}`, Accept: 'application/xml' }
  const response = await fetch(`${gateway.baseUrl}/api/1.0/f/ACME/SUPER1/${area}/take`, { headers })
  await response.arrayBuffer()
  return response.status
}

const failed: string[] = []
async function after(load: keyof typeof MOST_AFTER, work: () => Promise<readonly number[]>): Promise<void> {
  const before = held()
  const statuses = await work()
  const now = held() - before
  await wait(PAUSE)
  const kept = held() - before
  const well = statuses.filter((status) => status === 200).length
  console.log(
    `${load}: ${well} of ${statuses.length} well; ${now.toFixed(0)} MB more at once, ${kept.toFixed(0)} MB after ${PAUSE / 1000} s (at most ${MOST_AFTER[load]})`,
  )
  if (kept > MOST_AFTER[load] || well < statuses.length) failed.push(load)
}

await wait(PAUSE)
console.log(`idle: ${held().toFixed(0)} MB`)
await after('logins', async () => {
  const statuses: number[] = []
  while (statuses.length < 300) statuses.push(...(await Promise.all(Array.from({ length: 10 }, logIn))))
  return statuses
})
const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
await after('conversions', () =>
  Promise.all(
    Array.from({ length: 16 }, (_, at) => convert(at % 2 === 0 ? 'fund-data' : 'member-data', access_token)),
  ),
)
await gateway.stop()
upstream.close()
upstream.closeAllConnections()
rmSync(folder, { recursive: true })
process.exitCode = failed.length === 0 ? 0 : 1
