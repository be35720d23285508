/**
 * How long it takes from the command to the first request served, the CPU time of that, and how much memory the process
 * and its children then hold, beside the bare proxy of the benchmark, bare Node, and fastify with jose.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { cpuSeconds, processTree } from './cpu-time.ts'
import { median } from './exchanges.ts'
import { heldMegabytes } from './held-memory.ts'
import { newFolder, NODE_PROXIES, ROOT } from './subjects.ts'
import { programOf } from './postern-process.ts'
import { freePort } from '../../support/free-port.ts'

const RUNS = 9
/** Long enough for what is done after the start, and for a first collection. */
const IDLE_MS = 1500

const BARE = `
import { createServer } from 'node:http'
createServer((request, response) => response.end('{}')).listen(process.env.POSTERN_PORT, '127.0.0.1')`

const FASTIFY_AND_JOSE = `
import fastify from 'fastify'
import { createLocalJWKSet, jwtVerify } from 'jose'
const app = fastify()
const keys = createLocalJWKSet({ keys: [] })
app.get('/.well-known/jwks.json', async () => ({ keys: [] }))
app.get('/api', async (request) => (await jwtVerify(request.headers.authorization ?? '', keys)).payload)
await app.listen({ port: Number(process.env.POSTERN_PORT), host: '127.0.0.1' })`

const inline = (source: string): readonly string[] => ['--input-type=module', '--eval', source]
/** The bare proxy wants a key. Nobody shows it a token here. */
const PUBLIC_KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({
  type: 'spki',
  format: 'pem',
})

const serving = (root: string): readonly string[] => [programOf(root), 'serve', 'config/demo.yaml']

interface Subject {
  readonly name: string
  readonly args: readonly string[]
  /** The folder of the checkout. */
  readonly root?: string
  /** Each run begins with no keys and nothing compiled, as on a new machine. */
  readonly fresh?: true
}

const subjects = (beside?: string): readonly Subject[] => [
  { name: 'node:http', args: inline(BARE) },
  { name: NODE_PROXIES.bare, args: ['test/long/load/proxies.ts', 'bare'] },
  { name: 'fastify + jose', args: inline(FASTIFY_AND_JOSE) },
  { name: 'Postern', args: serving(ROOT) },
  ...(beside === undefined ? [] : [{ name: 'Postern in BENCH_BESIDE', args: serving(beside), root: beside }]),
  { name: 'Postern, first start', args: serving(ROOT), fresh: true },
]

interface Measured {
  readonly startMs: number
  /** Milliseconds. */
  readonly cpu: number
  /** With all below it. */
  readonly idleMegabytes: number
}

const isServed = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    get({ port, host: '127.0.0.1', path: '/.well-known/jwks.json', agent: false }, (response) => {
      response.resume()
      resolve(true)
    }).on('error', () => resolve(false))
  })

async function untilServed(child: ChildProcess, port: number): Promise<void> {
  while (!(await isServed(port))) {
    if (child.exitCode !== null) throw new Error('it ended before it served')
    await delay(1)
  }
}

async function measure({ args, root = ROOT }: Subject, folder: string): Promise<Measured> {
  const port = await freePort()
  const env = {
    ...process.env,
    PORT: String(port),
    PUBLIC_KEY,
    POSTERN_PORT: String(port),
    POSTERN_ADMIN_PORT: '0',
    POSTERN_DATA: join(folder, 'data'),
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
  }
  const started = performance.now()
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: 'ignore' })
  const exited = once(child, 'exit')
  await untilServed(child, port)
  const startMs = performance.now() - started
  const cpu = cpuSeconds(processTree(child.pid ?? 0)) * 1000
  await delay(IDLE_MS)
  const idleMegabytes = heldMegabytes(processTree(child.pid ?? 0))
  child.kill('SIGTERM')
  await exited
  return { startMs, cpu, idleMegabytes }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await newFolder()
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** One run of each in turn. What is not `fresh` has one folder, and a run before that makes keys and the compile cache. */
async function measureAll(
  subjects: readonly Subject[],
  folder: string,
): Promise<Map<Subject, readonly Measured[]>> {
  const samples = new Map<Subject, Measured[]>(subjects.map((each) => [each, []]))
  for (let run = -1; run < RUNS; run += 1)
    for (const [each, taken] of samples) {
      const own = join(folder, String(subjects.indexOf(each)))
      const measured = await (each.fresh ? inFolder((fresh) => measure(each, fresh)) : measure(each, own))
      if (run >= 0) taken.push(measured)
    }
  return samples
}

/** Prints the table. @param beside another checkout of Postern */
export async function compareStarts(beside: string | undefined): Promise<void> {
  const samples = await inFolder((folder) => measureAll(subjects(beside), folder))
  const figures = [...samples].map(([{ name }, taken]) => ({
    name,
    startMs: median(taken.map(({ startMs }) => startMs)),
    cpu: median(taken.map(({ cpu }) => cpu)),
    idle: median(taken.map(({ idleMegabytes }) => idleMegabytes)),
  }))
  const bare = figures.find(({ name }) => name === NODE_PROXIES.bare)?.cpu ?? Number.NaN
  console.log(`\nStart; medians of ${RUNS}, by turns. Goal: 3 times the CPU time of the bare proxy\n`)
  console.log(
    `| subject | first request ms | CPU ms | ratio to the bare proxy | idle MB |\n|${'---|'.repeat(5)}`,
  )
  for (const { name, startMs, cpu, idle } of figures)
    console.log(
      `| ${name} | ${startMs.toFixed(0)} | ${cpu.toFixed(0)} | ${(cpu / bare).toFixed(2)} | ${idle.toFixed(0)} |`,
    )
}
