/**
 * `npm run bench:start`: how long from the command to the first request served, and how much memory the process and
 * its children then hold while nothing happens, beside bare Node and beside fastify with jose. Medians of five; a
 * report, and no test: the times are those of the machine it runs on.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { get } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const RUNS = 5
/** Long enough for what is done after the start, and for a first collection. */
const IDLE_MS = 1500
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

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
const POSTERN = ['src/main.ts', 'serve', 'config/demo.yaml']

interface Subject {
  readonly name: string
  readonly args: readonly string[]
  /** Whether each run begins with no keys and nothing compiled, as on a new machine. */
  readonly fresh: boolean
}

const SUBJECTS: readonly Subject[] = [
  { name: 'node:http', args: inline(BARE), fresh: false },
  { name: 'fastify + jose', args: inline(FASTIFY_AND_JOSE), fresh: false },
  { name: 'Postern', args: POSTERN, fresh: false },
  { name: 'Postern, first start', args: POSTERN, fresh: true },
]

interface Measured {
  readonly startMs: number
  readonly idleMiB: number
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const isServed = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    get({ port, host: '127.0.0.1', path: '/.well-known/jwks.json', agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    }).on('error', () => resolve(false))
  })

async function untilServed(child: ChildProcess, port: number): Promise<void> {
  while (!(await isServed(port))) {
    if (child.exitCode !== null) throw new Error('it ended before it served')
    await delay(1)
  }
}

/** Resident memory of a process and all below it, in MiB; Linux only. */
async function residentMiB(pid: number): Promise<number> {
  const own = (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')
  const tasks = await readdir(`/proc/${pid}/task`)
  const lists = await Promise.all(tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'utf8')))
  const children = lists.join(' ').trim().split(/\s+/).filter(Boolean).map(Number)
  const below = await Promise.all(children.map(residentMiB))
  return below.reduce((sum, part) => sum + part, (Number(own[1]) * 4096) / 1024 ** 2)
}

async function measure({ args }: Subject, folder: string): Promise<Measured> {
  const port = await freePort()
  const env = {
    ...process.env,
    POSTERN_PORT: String(port),
    POSTERN_ADMIN_PORT: '0',
    POSTERN_DATA: join(folder, 'data'),
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
  }
  const started = performance.now()
  const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: 'ignore' })
  const exited = once(child, 'exit')
  await untilServed(child, port)
  const startMs = performance.now() - started
  await delay(IDLE_MS)
  const idleMiB = await residentMiB(child.pid ?? 0)
  child.kill('SIGTERM')
  await exited
  return { startMs, idleMiB }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'))
  try {
    return await work(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function runs(subject: Subject): Promise<readonly Measured[]> {
  const one = (folder: string): Promise<Measured> => measure(subject, folder)
  const measured: Measured[] = []
  if (subject.fresh) for (let run = 0; run < RUNS; run += 1) measured.push(await inFolder(one))
  else
    await inFolder(async (folder) => {
      await one(folder) // makes the keys and fills the compile cache
      for (let run = 0; run < RUNS; run += 1) measured.push(await one(folder))
    })
  return measured
}

console.log(`medians of ${RUNS}, Node ${process.version}`)
console.log(''.padEnd(22), 'first request'.padStart(14), 'idle memory'.padStart(14))
for (const subject of SUBJECTS) {
  const measured = await runs(subject)
  const start = median(measured.map(({ startMs }) => startMs))
  const idle = median(measured.map(({ idleMiB }) => idleMiB))
  console.log(
    subject.name.padEnd(22),
    `${start.toFixed(0)} ms`.padStart(14),
    `${idle.toFixed(0)} MiB`.padStart(14),
  )
}
