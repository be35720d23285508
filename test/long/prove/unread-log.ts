/**
 * What a log costs that nobody reads: memory after many calls, and how long the process takes to end when it is told to.
 * `node test/long/prove/unread-log.ts [CALLS] [ROOT]`; one worker, then two.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const CALLS = Number(process.argv[2] ?? 200_000)
const ROOT = process.argv[3] ?? fileURLToPath(new URL('../../..', import.meta.url))
const GIVE_UP = 15_000
const LANES = 64

const residentMB = async (pid: number): Promise<number> =>
  Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024

const children = async (pid: number): Promise<readonly number[]> =>
  (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').filter(Boolean).map(Number)

async function allMB(pid: number): Promise<readonly number[]> {
  const pids = [pid, ...(await children(pid))]
  return Promise.all(pids.map(async (each) => Math.round(await residentMB(each))))
}

async function callMany(port: number, calls: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: LANES })
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request({ port, agent, host: '127.0.0.1', path: '/api/1.0/b/ACME/c/d' }, (answer) => {
        answer.resume().on('end', () => resolve())
      })
      sent.on('error', reject).end()
    })
  let left = calls
  const lane = async (): Promise<void> => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  agent.destroy()
}

async function prove(workers: number): Promise<void> {
  const data = await mkdtemp(join(tmpdir(), 'postern-unread-'))
  const file = join(data, 'pool.yaml')
  const upstream = 'backends: { funds: { kind: http, target: http://127.0.0.1:9 } }'
  await writeFile(file, `extends: ${join(ROOT, 'config/upstream.yaml')}\nworkers: ${workers}\n${upstream}\n`)
  const args = ['src/main.ts', 'serve', file]
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: {
      ...process.env,
      POSTERN_PORT: '0',
      POSTERN_ADMIN_PORT: '0',
      POSTERN_DATA: join(data, 'state'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let told = ''
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()))
  // Nobody reads child.stdout: the pipe fills, and stays full.
  child.stdout.pause()
  const serving = /at http:\/\/\S+:(\d+)/
  while (!serving.test(told)) await Promise.race([once(child.stderr, 'data'), once(child, 'exit')])
  const port = Number(serving.exec(told)?.[1])
  const pid = child.pid ?? 0
  await callMany(port, 2000)
  const before = await allMB(pid)
  await callMany(port, CALLS)
  const after = await allMB(pid)
  const start = performance.now()
  child.kill('SIGTERM')
  const ended = await Promise.race([
    once(child, 'exit').then(() => true),
    new Promise<boolean>((resolve) => setTimeout(() => resolve(false), GIVE_UP).unref()),
  ])
  const seconds = ((performance.now() - start) / 1000).toFixed(2)
  if (!ended) child.kill('SIGKILL')
  console.log(
    `workers ${workers}: ${CALLS} calls, MB ${before.join('+')} -> ${after.join('+')}, ` +
      (ended ? `ended after ${seconds} s` : `did not end within ${GIVE_UP / 1000} s`),
  )
  await rm(data, { recursive: true, force: true })
}

for (const workers of [1, 2]) await prove(workers)
process.exit(0)
