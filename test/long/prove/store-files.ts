/**
 * What becomes of a service whose store is deleted, replaced or damaged, while it runs or between two runs, and how
 * long a token request takes at most while four others write: `node test/long/prove/store-files.ts [ROOT]`.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { ROOT as HERE, spawnPostern, type SpawnedPostern } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, basic, issueToken } from '../../support/tokens.ts'

const ROOT = process.argv[2] ?? HERE
const SUFFIXES = ['', '-wal', '-shm']

const newFolder = (): string => mkdtempSync(join(tmpdir(), 'postern-files-'))
const database = (data: string): string => join(data, 'postern.sqlite')

interface Place {
  readonly data: string
  readonly config: string
}

function newPlace(workers: number): Place {
  const folder = newFolder()
  const config = join(folder, 'postern.yaml')
  const more =
    workers > 1
      ? `workers: ${workers}\nbackends: { funds: { kind: http, target: http://127.0.0.1:9 } }\n`
      : ''
  const world = workers > 1 ? 'upstream.yaml' : 'demo.yaml'
  writeFileSync(config, `extends: ${join(ROOT, 'config', world)}\n${more}`)
  return { data: join(folder, 'data'), config }
}

/** The port is part of what tokens are for: at a restart it is the same. */
const start = ({ data, config }: Place, port = 0): Promise<SpawnedPostern> =>
  spawnPostern({ root: ROOT, config, environment: { POSTERN_DATA: data, POSTERN_PORT: String(port) } })

/** `serves`, or the first line of the refusal. */
async function tryStart(place: Place, port = 0): Promise<{ told: string; postern?: SpawnedPostern }> {
  try {
    const postern = await start(place, port)
    return { told: 'starts', postern }
  } catch (error) {
    return {
      told: `REFUSES: ${/The store .{0,140}/.exec(String(error))?.[0] ?? String(error).slice(0, 200)}`,
    }
  }
}

const call = async (postern: SpawnedPostern, token: string): Promise<number> => {
  const response = await fetch(`${postern.baseUrl}/api/1.0/u/connect/userinfo`, {
    headers: { Authorization: `Bearer ${token}`, Connection: 'close' },
  })
  await response.text()
  return response.status
}

const ready = async ({ adminUrl }: SpawnedPostern): Promise<number> =>
  (await fetch(`${adminUrl}/health/ready`)).status

const login = (postern: SpawnedPostern): Promise<string> =>
  issueToken(postern, { scope: `${ALL_AT_ACME} offline_access` }).then(
    () => '200',
    (error: unknown) => String(error).slice(0, 12),
  )

async function revokedToken(postern: SpawnedPostern): Promise<string> {
  const { access_token: token } = await issueToken(postern, { scope: ALL_AT_ACME })
  await fetch(`${postern.authUrl}/connect/revocation`, {
    method: 'POST',
    headers: { Authorization: basic('acme-books') },
    body: new URLSearchParams({ token }),
  })
  await delay(1200)
  return token
}

const cli = (place: Place, ...args: string[]): Promise<string> =>
  new Promise((resolve) => {
    const env = { ...process.env, POSTERN_DATA: place.data }
    execFile(
      process.execPath,
      ['src/main.ts', ...args, '--config', place.config],
      { cwd: ROOT, env },
      (error, _out, err) => resolve(error === null ? 'done' : `exit ${error.code}: ${err.slice(0, 80)}`),
    )
  })

const remove = ({ data }: Place): void => {
  for (const suffix of SUFFIXES) rmSync(database(data) + suffix, { force: true })
}

const watches = (postern: SpawnedPostern): string =>
  /"detail":"([^"]*(?:deleted|replaced|damaged)[^"]*)"/.exec(postern.output())?.[1] ?? 'nothing'

async function underOneProcess(how: 'deleted' | 'replaced'): Promise<void> {
  const place = newPlace(1)
  const postern = await start(place)
  const token = await revokedToken(postern)
  if (how === 'replaced') {
    const other = newPlace(1)
    const second = await start(other)
    await second.stop()
    remove(place)
    copyFileSync(database(other.data), database(place.data))
  } else remove(place)
  await delay(1500)
  const told = [
    `ready ${await ready(postern)}`,
    `log: ${watches(postern)}`,
    `login ${await login(postern)}`,
    `revoked token ${await call(postern, token)}`,
    `CLI user list: ${await cli(place, 'user', 'list')}`,
    `a second database: ${how === 'deleted' ? existsSync(database(place.data)) : '-'}`,
  ]
  await postern.stop()
  const again = await tryStart(place, postern.port)
  told.push(`restart ${again.told}`)
  if (again.postern) told.push(`revoked token then ${await call(again.postern, token)}`)
  await again.postern?.stop()
  console.log(`${how} under one process:\n  ${told.join('\n  ')}`)
}

async function underTwoWorkers(how: 'deleted' | 'replaced'): Promise<void> {
  const place = newPlace(2)
  const postern = await start(place)
  const token = await revokedToken(postern)
  if (how === 'replaced') {
    const other = newPlace(1)
    await (await start(other)).stop()
    remove(place)
    copyFileSync(database(other.data), database(place.data))
  } else remove(place)
  const [first] = readFileSync(`/proc/${postern.pid}/task/${postern.pid}/children`, 'utf8').trim().split(' ')
  process.kill(Number(first), 'SIGKILL')
  await delay(6000)
  const statuses: Record<number, number> = {}
  for (let n = 0; n < 20; n += 1) {
    const status = await call(postern, token)
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  console.log(
    `${how} under two workers, one killed: revoked token ${JSON.stringify(statuses)}, ready ${await ready(postern)}`,
  )
  await postern.stop()
}

function overwrite(path: string, from: number, bytes: number): void {
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(bytes, 0xa5), 0, bytes, from)
}

async function damagedBetweenRuns(what: string, damage: (path: string) => void): Promise<void> {
  const place = newPlace(1)
  await (await start(place)).stop()
  const db = new DatabaseSync(database(place.data))
  const insert = db.prepare("INSERT INTO record (kind, key, value) VALUES ('filler', ?, ?)")
  for (let n = 0; n < 5000; n += 1) insert.run(`k${n}`, JSON.stringify({ n, text: 'x'.repeat(400) }))
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  damage(database(place.data))
  const { told, postern } = await tryStart(place)
  const more = postern ? [`ready ${await ready(postern)}`, `login ${await login(postern)}`] : []
  await postern?.stop()
  console.log(`${what}: ${[told, ...more].join(', ')}`)
}

async function fourWriters(): Promise<void> {
  const place = newPlace(1)
  const postern = await start(place)
  await login(postern)
  const source = `
    const { DatabaseSync } = require('node:sqlite')
    const db = new DatabaseSync(${JSON.stringify(database(place.data))}, { timeout: 5000 })
    const pause = new Int32Array(new SharedArrayBuffer(4))
    for (;;) {
      try { db.exec('BEGIN IMMEDIATE'); Atomics.wait(pause, 0, 0, 60); db.exec('COMMIT') } catch {}
      Atomics.wait(pause, 0, 0, 10)
    }`
  const writers = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--eval', source], { stdio: 'ignore' }),
  )
  await delay(500)
  const times: number[] = []
  const refused: number[] = []
  for (let n = 0; n < 60; n += 1) {
    const before = performance.now()
    const code = await login(postern)
    const ms = performance.now() - before
    times.push(ms)
    if (code.includes('503')) refused.push(ms)
    else if (code !== '200') throw new Error(code)
  }
  for (const writer of writers) {
    const ended = once(writer, 'exit')
    writer.kill('SIGKILL')
    await ended
  }
  times.sort((a, b) => a - b)
  const at = (share: number): number => Math.round(times[Math.floor(times.length * share)] ?? 0)
  console.log(
    `four writers: token requests p50 ${at(0.5)} ms, most ${at(0.999)} ms, ` +
      `${refused.length} of 60 refused (503), most ${Math.round(Math.max(0, ...refused))} ms`,
  )
  await postern.stop()
}

async function files(): Promise<void> {
  await underOneProcess('deleted')
  await underOneProcess('replaced')
  await underTwoWorkers('deleted')
  await underTwoWorkers('replaced')
  await damagedBetweenRuns('first page overwritten', (path) => overwrite(path, 0, 4096))
  await damagedBetweenRuns('first page overwritten behind its header', (path) => overwrite(path, 100, 3996))
  await damagedBetweenRuns('five pages overwritten', (path) => {
    const pages = statSync(path).size / 4096
    for (let n = 1; n <= 5; n += 1) overwrite(path, Math.floor((pages * n) / 6) * 4096, 4096)
  })
  await damagedBetweenRuns('emptied', (path) => writeFileSync(path, ''))
}

if (process.argv[3] !== 'writers') await files()
await fourWriters()
