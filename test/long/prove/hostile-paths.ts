/**
 * `node test/long/prove/hostile-paths.ts [root]`: latency of other callers beside 25 requests a second, without credentials,
 * whose paths are made to be slow to search (T2.9). The gateway is that of `root` (this repository).
 */
import { Agent, request } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { spawnPostern, ROOT } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

const SECONDS = 8
const PATHS = [`/api/1.0/b/${'eyJ'.repeat(2600)}/x/y`, `/api/1.0/b/${'eyJa.'.repeat(1560)}/x/y`]

const gateway = await spawnPostern({ config: 'config/demo.yaml', root: process.argv[2] ?? ROOT })
const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
const agent = new Agent({ keepAlive: true })

const get = (path: string, headers: Record<string, string> = {}): Promise<number> =>
  new Promise((resolve, reject) => {
    const start = performance.now()
    request({ port: gateway.port, path, headers, agent }, (response) => {
      response.resume().on('end', () => resolve(performance.now() - start))
    })
      .on('error', reject)
      .end()
  })

/** Milliseconds of calls, one after another on each of four connections. */
async function measure(): Promise<readonly number[]> {
  const times: number[] = []
  const end = performance.now() + SECONDS * 1000
  const caller = async (): Promise<void> => {
    while (performance.now() < end) {
      times.push(
        await get('/api/1.0/b/ACME/fund-data/fund-list', { Authorization: `Bearer ${access_token}` }),
      )
      await wait(5)
    }
  }
  await Promise.all([caller(), caller(), caller(), caller()])
  return times.toSorted((a, b) => a - b)
}

const report = (name: string, times: readonly number[]): void => {
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? Number.NaN).toFixed(1)
  console.log(`| ${name} | ${times.length} | ${at(0.5)} | ${at(0.99)} | ${(times.at(-1) ?? 0).toFixed(1)} |`)
}

console.log('| beside | calls | p50 ms | p99 ms | longest ms |\n|---|---|---|---|---|')
await measure()
report('nobody', await measure())
for (const path of PATHS) {
  const attack = setInterval(() => void get(path), 1000 / 25)
  report(`25/s of ${path.slice(11, 20)}…`, await measure())
  clearInterval(attack)
}
agent.destroy()
await gateway.stop()
