/**
 * `npm run bench:start`: how long from the command to the first request served, and how much memory the process and
 * its children then hold while nothing happens, beside bare Node and beside fastify with jose. Medians of five; a
 * report, and no test: the times are those of the machine it runs on.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { processTree, residentMegabytes } from './cpu-time.ts'
import { median } from './exchanges.ts'
import { machine } from './machine.ts'
import { newFolder, ROOT } from './subjects.ts'
import { freePort } from '../support/free-port.ts'

const RUNS = 5
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
  /** Resident, with all below it. */
  readonly idleMegabytes: number
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
  const idleMegabytes = residentMegabytes(processTree(child.pid ?? 0))
  child.kill('SIGTERM')
  await exited
  return { startMs, idleMegabytes }
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await newFolder()
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

console.log(machine())
console.log(`medians of ${RUNS}`)
console.log(''.padEnd(22), 'first request'.padStart(14), 'idle memory'.padStart(14))
for (const subject of SUBJECTS) {
  const measured = await runs(subject)
  const start = median(measured.map(({ startMs }) => startMs))
  const idle = median(measured.map(({ idleMegabytes }) => idleMegabytes))
  console.log(
    subject.name.padEnd(22),
    `${start.toFixed(0)} ms`.padStart(14),
    `${idle.toFixed(0)} MB`.padStart(14),
  )
}
