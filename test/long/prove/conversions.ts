/**
 * `node test/long/prove/conversions.ts [root]`: how long large conversions keep others waiting (T4.7). The gateway of `root`
 * (this repository) serves answers of up to 16 MiB in the other format; told are the longest delay of its event loop, the
 * time of the call and the resident memory afterwards.
 */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { spawnPostern, ROOT } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

const root = process.argv[2] ?? ROOT
const folder = mkdtempSync(join(tmpdir(), 'postern-conversions-'))
const MOST = 16 * 1024 ** 2 - 1024

/**
 * Answers SIGUSR2 with the longest delay since the last one: of the clock, which a busy machine makes longer, and of the
 * CPU time that the serving thread itself spent on end.
 */
const WATCH = `
  import { monitorEventLoopDelay } from 'node:perf_hooks'
  import { isMainThread } from 'node:worker_threads'
  import { writeFileSync } from 'node:fs'
  if (isMainThread && process.argv.includes('serve')) {
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    const spent = () => { const { user, system } = process.threadCpuUsage(); return (user + system) / 1000 }
    let before = spent()
    let cpu = 0
    setInterval(() => {
      const now = spent()
      cpu = Math.max(cpu, now - before)
      before = now
    }, 1).unref()
    process.on('SIGUSR2', () => {
      const told = { max: delay.max / 1e6, cpu, rss: process.memoryUsage().rss / 2 ** 20 }
      writeFileSync(${JSON.stringify(join(folder, 'delay'))}, JSON.stringify(told))
      delay.reset()
      cpu = 0
    })
  }`

const MODULE = `
  const values = {
    numbers: () => Array.from({ length: 900_000 }, (_, i) => i),
    text: () => 'é&'.repeat(${Math.floor(MOST / 3)}),
    records: () => Array.from({ length: 100_000 }, (_, i) => ({ id: i, name: 'member ' + i, tags: ['a', 'b'], born: null })),
    members: () => Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => ['key' + i, i])),
    fine: () => 1,
  }
  const kept = new Map(Object.entries(values).map(([name, make]) => [name, make()]))
  export default () => ({ answer: ({ query }) => ({ body: { kind: 'value', value: kept.get(query.get('case')) } }) })`

const repeat = (text: string, bytes: number): string => text.repeat(Math.floor(bytes / text.length))
const nested = (depth: number, inside: string): string => '['.repeat(depth) + inside + ']'.repeat(depth)

const JSON_ANSWERS: Readonly<Record<string, () => string>> = {
  '900,000 numbers': () => `[${repeat('1,', 1_799_998)}1]`,
  '16 MiB of text': () => JSON.stringify('x'.repeat(MOST)),
  '16 MiB of &': () => JSON.stringify('&'.repeat(MOST)),
  '16 MiB of é': () => JSON.stringify('é'.repeat(MOST / 2)),
  '16 MiB of escapes': () => `"${repeat('\\n', MOST)}"`,
  '16 MiB in one key': () => JSON.stringify({ [' '.repeat(MOST)]: 1 }),
  '400,000 keys': () => `{${Array.from({ length: 400_000 }, (_, i) => `"key number ${i}":${i}`).join(',')}}`,
  '150,000 records': () =>
    JSON.stringify(
      Array.from({ length: 150_000 }, (_, i) => ({
        Id: i,
        Name: `Member ${i}`,
        Open: true,
        At: null,
        P: 1.5,
      })),
    ),
  'deep, 190 levels, 16 MiB': () => nested(190, repeat('"abcdefghij",', MOST - 500) + '1'),
}
const XML_ANSWERS: Readonly<Record<string, () => string>> = {
  '900,000 elements': () => `<r type="array">${repeat('<a>1</a>', 900_000 * 8)}</r>`,
  '16 MiB of text': () => `<r>${'x'.repeat(MOST - 20)}</r>`,
  '16 MiB of references': () => `<r>${repeat('&amp;', 4_900_000)}</r>`,
  '16 MiB of comments': () => `<r>${repeat('<!-- -->', MOST - 20)}</r>`,
}
const REQUESTS: Readonly<Record<string, () => string>> = {
  'JSON, 99,000 numbers': () => `{"a":[${repeat('1,', 197_998)}1]}`,
  'JSON, 16 MiB of text': () => `{"a":${JSON.stringify('x'.repeat(MOST - 100))}}`,
  'JSON, 16 MiB of é': () => `{"a":${JSON.stringify('é'.repeat(MOST / 2 - 100))}}`,
}
const bodies = new Map<string, Buffer>()
for (const [name, make] of [...Object.entries(JSON_ANSWERS), ...Object.entries(XML_ANSWERS)])
  bodies.set(`${name} ${XML_ANSWERS[name] === make ? 'xml' : 'json'}`, Buffer.from(make()))

const upstream = createServer((request, response) => {
  request.resume().on('end', () => {
    const url = new URL(request.url ?? '', 'http://x')
    const format = url.searchParams.get('format') ?? 'json'
    const body =
      bodies.get(`${url.searchParams.get('case') ?? ''} ${format}`) ??
      Buffer.from(format === 'xml' ? '<r/>' : '{}')
    response
      .writeHead(200, { 'Content-Type': `application/${format}`, 'Content-Length': body.length })
      .end(body)
  })
})
upstream.listen(0, '127.0.0.1')
await once(upstream, 'listening')
const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`

writeFileSync(join(folder, 'watch.mjs'), WATCH)
writeFileSync(join(folder, 'module.mjs'), MODULE)
writeFileSync(
  join(folder, 'config.yaml'),
  `extends: ${join(root, 'config/demo.yaml')}
server: { limits: { body: 20MiB } }
backends:
  json: { kind: http, target: '${target}', timeouts: { firstByte: 1m, idle: 1m } }
  xml: { kind: http, target: '${target}', format: xml, timeouts: { firstByte: 1m, idle: 1m } }
  own: { kind: module, file: module.mjs, timeout: 1m }
areas:
  fund-data: { backend: json }
  member-data: { backend: xml }
  own-data: { backend: own }
actions:
  - level: fund
    area: own-data
    action: values
    methods: { GET: { scopes: { any: [fund.read] } }, POST: { scopes: { any: [fund.read] }, body: {} } }
  - level: fund
    area: fund-data
    action: take
    methods: { GET: { scopes: { any: [fund.read] } }, POST: { scopes: { any: [fund.read] }, body: {} } }
  - level: fund
    area: member-data
    action: take
    methods: { GET: { scopes: { any: [fund.read] } }, POST: { scopes: { any: [fund.read] }, body: {} } }
`,
)
const gateway = await spawnPostern({
  config: join(folder, 'config.yaml'),
  root,
  environment: { NODE_OPTIONS: `--import ${join(folder, 'watch.mjs')}` },
})
const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })

async function watched(): Promise<{ readonly max: number; readonly cpu: number; readonly rss: number }> {
  rmSync(join(folder, 'delay'), { force: true })
  process.kill(gateway.pid, 'SIGUSR2')
  for (;;) {
    await wait(20)
    try {
      return JSON.parse(readFileSync(join(folder, 'delay'), 'utf8')) as {
        max: number
        cpu: number
        rss: number
      }
    } catch {
      // not written yet
    }
  }
}

async function measure(name: string, path: string, accept: 'json' | 'xml', body?: string): Promise<void> {
  const url = `${gateway.baseUrl}/api/1.0/f/ACME/SUPER1/${path}`
  const headers = {
    Authorization: `Bearer ${access_token}`,
    Accept: `application/${accept}`,
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  }
  await wait(200)
  await watched()
  const start = performance.now()
  const response = await fetch(url, { headers, ...(body !== undefined && { method: 'POST', body }) }).catch(
    () => undefined,
  )
  const size = (await response?.arrayBuffer().catch(() => undefined))?.byteLength ?? 0
  const ms = performance.now() - start
  const { max, cpu, rss } = await watched()
  const row = [
    name,
    String(response?.status ?? 'none'),
    (size / 2 ** 20).toFixed(1),
    max.toFixed(0),
    cpu.toFixed(0),
    ms.toFixed(0),
    rss.toFixed(0),
  ]
  console.log(`| ${row.join(' | ')} |`)
}

console.log(
  '| case | status | MiB answered | longest delay ms | of CPU ms | call ms | RSS MiB |\n|---|---|---|---|---|---|---|',
)
const of = (name: string, format: string): string => `?case=${encodeURIComponent(name)}&format=${format}`
await watched()
await wait(3000)
const quiet = await watched()
console.log(
  `| nothing, for 3 s | | | ${quiet.max.toFixed(0)} | ${quiet.cpu.toFixed(0)} | | ${quiet.rss.toFixed(0)} |`,
)
await measure(
  '(first thread) JSON to XML: 150,000 records',
  `fund-data/take${of('150,000 records', 'json')}`,
  'xml',
)
for (const name of Object.keys(JSON_ANSWERS))
  await measure(`JSON to XML: ${name}`, `fund-data/take${of(name, 'json')}`, 'xml')
for (const name of ['900,000 numbers', '16 MiB of text', '400,000 keys'])
  await measure(`JSON wrapped: ${name}`, `fund-data/take${of(name, 'json')}`, 'json')
for (const name of Object.keys(XML_ANSWERS))
  await measure(`XML to JSON: ${name}`, `member-data/take${of(name, 'xml')}`, 'json')
for (const name of ['numbers', 'text', 'records', 'members'])
  for (const accept of ['json', 'xml'] as const)
    await measure(`module's value to ${accept}: ${name}`, `own-data/values?case=${name}`, accept)
for (const [name, make] of Object.entries(REQUESTS)) {
  await measure(`request to JSON: ${name}`, 'fund-data/take?format=json', 'json', make())
  await measure(`request to XML: ${name}`, 'member-data/take?format=xml', 'json', make())
  await measure(`request to a module: ${name}`, 'own-data/values?case=fine', 'json', make())
}
await gateway.stop()
upstream.close()
upstream.closeAllConnections()
rmSync(folder, { recursive: true })
