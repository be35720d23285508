/**
 * A log whose disk is full for seconds, and one whose reader leaves and comes back: `node test/long/prove/full-log.ts
 * [ROOT]`, as root (it mounts a small tmpfs). Tells how many lines of calls arrived, how many were told to be missing,
 * and how many are missing without a word.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  createReadStream,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const ROOT = process.argv[2] ?? fileURLToPath(new URL('../../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'postern-full-'))

async function start(stdout: number, name: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, ['src/main.ts', 'serve', 'config/demo.yaml'], {
    cwd: ROOT,
    env: { ...process.env, POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0', POSTERN_DATA: join(folder, name) },
    stdio: ['ignore', stdout, 'pipe'],
  })
  let told = ''
  child.stderr?.on('data', (chunk: Buffer) => (told += chunk.toString()))
  while (!told.includes('admin-token')) await delay(20)
  return { child, url: /at (http:\/\/\S+)/.exec(told)?.[1] ?? '' }
}

async function call(url: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += 50)
    await Promise.all(
      Array.from({ length: 50 }, async () => (await fetch(`${url}/api/1.0/b/ACME/c/d`)).arrayBuffer()),
    )
}

function tell(what: string, text: string, calls: number): void {
  const lines = text.split('\n').filter(Boolean)
  let [torn, seen, missing] = [0, 0, 0]
  for (const line of lines) {
    try {
      const { event, lines: lost = 0 } = JSON.parse(line) as { event: string; lines?: number }
      if (event === 'call') seen += 1
      if (event === 'log.lines_dropped') missing += lost
    } catch {
      torn += 1
    }
  }
  console.log(`${what}: ${calls} calls, ${seen} lines, ${missing} told to be missing, ${torn} torn`)
}

async function end(child: ChildProcess): Promise<string> {
  const started = performance.now()
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const ended = await Promise.race([exited.then(() => true), delay(10_000, false)])
  if (!ended) child.kill('SIGKILL')
  return ended ? `ended after ${Math.round(performance.now() - started)} ms` : 'did not end'
}

async function fullDisk(): Promise<void> {
  const disk = join(folder, 'disk')
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
  try {
    writeFileSync(join(disk, 'ballast'), Buffer.alloc(700 * 1024))
    const { child, url } = await start(openSync(join(disk, 'log'), 'a'), 'disk-data')
    await call(url, 2000)
    await delay(1500)
    rmSync(join(disk, 'ballast'))
    await delay(2500)
    await call(url, 200)
    await delay(1500)
    const how = await end(child)
    tell(`full disk (${how})`, readFileSync(join(disk, 'log'), 'utf8'), 2200)
  } finally {
    execFileSync('umount', ['-l', disk])
  }
}

async function leavingReader(): Promise<void> {
  const fifo = join(folder, 'fifo')
  execFileSync('mkfifo', [fifo])
  let text = ''
  const read = (): ReturnType<typeof createReadStream> =>
    createReadStream(fifo).on('data', (chunk) => (text += chunk.toString()))
  // To open one end waits for the other, but for whoever opens both.
  const both = openSync(fifo, 'r+')
  const first = read()
  const descriptor = openSync(fifo, 'w')
  await once(first, 'open')
  closeSync(both)
  const { child, url } = await start(descriptor, 'fifo-data')
  closeSync(descriptor)
  await call(url, 500)
  await delay(1500)
  first.destroy()
  await delay(100)
  await call(url, 500)
  await delay(1500)
  const second = read()
  await delay(2500)
  await call(url, 500)
  await delay(1500)
  const how = await end(child)
  second.destroy()
  tell(`reader that left and came back (${how})`, text, 1500)
}

await leavingReader()
await fullDisk()
rmSync(folder, { recursive: true, force: true })
process.exit(0)
