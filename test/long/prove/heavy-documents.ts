/**
 * `node test/long/prove/heavy-documents.ts [root]`: what each heavy document (T4.3) costs the process that refuses it, as the
 * least of several runs: milliseconds of the thread of the event loop on a processor, and MiB of resident memory; and how
 * long other calls take beside all of them. The gateway is that of `root` (this repository). Linux only.
 */
import { readFileSync } from 'node:fs'
import { bytesOf } from '../../support/attacked.ts'
import { HEAVY_BODIES } from '../../support/heavy-documents.ts'
import { sendRaw } from '../../support/raw-http.ts'
import { DEMO, ROOT, spawnPostern } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken, MEMBER } from '../../support/tokens.ts'

const RUNS = 12
const CALLS = 400
const MIB = 1024 ** 2
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const DETAIL = `/api/1.0/f/ACME/SUPER1/member-data/member-detail/${MEMBER}`

const gateway = await spawnPostern({ config: DEMO, root: process.argv[2] ?? ROOT })
const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
const authorization = `Authorization: Bearer ${access_token}\r\n`

const burden = (): { busy: number; memory: number } => {
  const read = (name: string): string[] => readFileSync(`/proc/${gateway.pid}/${name}`, 'utf8').split(' ')
  return { busy: Number(read('schedstat')[0]) / 1e6, memory: Number(read('statm')[1]) * 4096 }
}
const attack = (type: string, body: string) => {
  const lines = `${authorization}Content-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n`
  return sendRaw(gateway.port, bytesOf({ method: 'POST', target: DETAIL, lines, body }))
}

console.log('  ms   MiB  document')
for (const [name, type, body] of HEAVY_BODIES) {
  let [busy, memory] = [Infinity, Infinity]
  for (let run = 0; run < RUNS; run += 1) {
    const before = burden()
    await attack(type, body)
    const after = burden()
    busy = Math.min(busy, after.busy - before.busy)
    memory = Math.min(memory, after.memory - before.memory)
  }
  console.log(`${busy.toFixed(1).padStart(5)} ${(memory / MIB).toFixed(1).padStart(5)}  ${name}`)
}

const campaign = new AbortController()
const attacker = (async () => {
  for (let at = 0; !campaign.signal.aborted; at += 1) {
    const [, type = '', body = ''] = HEAVY_BODIES[at % HEAVY_BODIES.length] ?? []
    await attack(type, body)
  }
})()
const times: number[] = []
while (times.length < CALLS) {
  const start = performance.now()
  await sendRaw(gateway.port, bytesOf({ target: LIST, lines: authorization }))
  times.push(performance.now() - start)
}
campaign.abort()
await attacker
const sorted = times.toSorted((a, b) => a - b)
const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1)
console.log(`other calls beside them: median ${at(0.5)} ms, 99 % ${at(0.99)} ms, slowest ${at(0.999)} ms`)
await gateway.stop()
