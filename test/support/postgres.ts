/**
 * A Postgres of the tests' own: in a temporary folder, on a free port of loopback, as a user without rights. Most tests share
 * one cluster for the whole run, and have a schema each. A test that stops or freezes it has a cluster of its own.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { onTestFinished } from 'vitest'
import { planPostgres, type PostgresConfig, type PostgresPlan } from '../../src/extensions/postgres/schema.ts'
import { foundations, makeSchema, tables } from '../../src/extensions/postgres/migrations.ts'
import { freePort } from './free-port.ts'
import { postgresPrograms } from './postgres-programs.ts'
import { SHARED_POSTGRES } from './temporary-files.ts'

const isRoot = process.geteuid?.() === 0
/** Postgres refuses to run as root. Its package has made this user. */
const OTHER_USER = ['setpriv', '--reuid=postgres', '--regid=postgres', '--init-groups']
const ENVIRONMENT = { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' }

function asUser(program: string, args: readonly string[]): [string, string[]] {
  const path = join(postgresPrograms() ?? '/postgresql-is-not-installed', program)
  return isRoot ? [OTHER_USER[0]!, [...OTHER_USER.slice(1), path, ...args]] : [path, [...args]]
}

/** Runs one of Postgres' programs to its end. */
export function runProgram(program: string, args: readonly string[]): string {
  const [file, all] = asUser(program, args)
  return execFileSync(file, all, {
    env: ENVIRONMENT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** Settings under which nothing waits for a disk: no test cuts the power. */
const SETTINGS = [
  ...['-c', 'fsync=off', '-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=300'],
  ...['-c', 'log_min_messages=fatal'],
]

/** The user of all tests. A role `serializable` beside it runs everything at that isolation level. */
const USER = 'postern'

const openFolder = (folder: string): void => {
  if (isRoot) chownSync(folder, Number(idOf('-u')), Number(idOf('-g')))
}
const idOf = (option: string): string => execFileSync('id', [option, 'postgres'], { encoding: 'utf8' }).trim()

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** A cluster: its folder, its port, and what can be done to it. */
export class PostgresCluster {
  readonly folder: string
  readonly port: number
  readonly #settings: readonly string[]
  #server: ChildProcess | undefined

  constructor(folder: string, port: number, settings: readonly string[] = []) {
    this.folder = folder
    this.port = port
    this.#settings = settings
  }

  url(user = USER): string {
    return `postgres://${user}@127.0.0.1:${this.port}/postgres`
  }

  /** @param more options of initdb */
  create(more: readonly string[] = []): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    openFolder(this.folder)
    const data = ['-D', join(this.folder, 'data'), '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C']
    runProgram('initdb', [...data, '--no-sync', ...more])
  }

  /** Makes it a standby of another one, with all that is in there. `start` starts it. */
  createStandby(primary: PostgresCluster): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    openFolder(this.folder)
    const from = ['-h', '127.0.0.1', '-p', String(primary.port), '-U', USER]
    runProgram('pg_basebackup', [
      '-D',
      join(this.folder, 'data'),
      '-R',
      '-X',
      'stream',
      '-c',
      'fast',
      ...from,
    ])
  }

  /** A standby hears nothing of its primary any more. */
  deafen(): void {
    for (const id of this.#receivers()) signal(id, 'SIGSTOP')
  }

  /** Makes a standby the primary. The one before must have ended. */
  async promote(): Promise<void> {
    const promoted = ['-D', join(this.folder, 'data'), '-W', 'promote']
    runProgram('pg_ctl', promoted)
    // A receiver that was stopped is told to end meanwhile, and does so before it reads what lies in its socket.
    await pause(500)
    for (const id of this.#receivers()) signal(id, 'SIGCONT')
    while (query(this, 'SELECT pg_is_in_recovery()') !== 'f') await pause(20)
  }

  #receivers(): readonly number[] {
    return this.#processes().filter((id) =>
      readFileSync(`/proc/${id}/cmdline`, 'utf8').includes('walreceiver'),
    )
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const place = ['-D', join(this.folder, 'data'), '-p', String(this.port), '-k', this.folder]
    const [file, args] = asUser('postgres', [...place, ...SETTINGS, ...this.#settings])
    const server = spawn(file, args, { env: ENVIRONMENT, stdio: 'ignore' })
    server.unref()
    this.#server = server
    await this.answering(() => server.exitCode !== null)
  }

  /** Resolves when it takes queries. */
  async answering(hasEnded: () => boolean = () => false): Promise<void> {
    for (;;) {
      if ((await answers(this.port)) && this.#isReady()) return
      if (hasEnded()) throw new Error(`Postgres in ${this.folder} has ended`)
      await pause(20)
    }
  }

  #isReady(): boolean {
    try {
      query(this, 'SELECT 1')
      return true
    } catch {
      return false
    }
  }

  /** Ends it at once, as a crash does. */
  async kill(): Promise<void> {
    const server = this.#server
    // It was let go of, so that a process that forgets it can end.
    server?.ref()
    const ended =
      server && server.exitCode === null && server.signalCode === null ? once(server, 'exit') : undefined
    const processes = this.#processes()
    for (const id of processes) signal(id, 'SIGKILL')
    await ended
    this.#server = undefined
    // The next one refuses the folder while a process of this one lives.
    for (const id of processes) while (isAlive(id)) await pause(5)
  }

  /** Nothing of it runs until `thaw`. */
  freeze(): void {
    for (const id of this.#processes()) signal(id, 'SIGSTOP')
  }

  thaw(): void {
    for (const id of this.#processes()) signal(id, 'SIGCONT')
  }

  /** The first process, and those that it has started, which go on alone if only the first one is stopped. */
  #processes(): number[] {
    const pidFile = join(this.folder, 'data/postmaster.pid')
    if (!existsSync(pidFile)) return []
    const main = Number(readFileSync(pidFile, 'utf8').split('\n')[0])
    return [main, ...childrenOf(main)]
  }

  async remove(): Promise<void> {
    this.thaw()
    await this.kill()
    await rm(this.folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

function childrenOf(id: number): number[] {
  try {
    const found = readFileSync(`/proc/${id}/task/${id}/children`, 'utf8')
    return found.trim().split(' ').filter(Boolean).map(Number)
  } catch {
    return []
  }
}

function signal(id: number, name: NodeJS.Signals): void {
  try {
    process.kill(id, name)
  } catch {
    // It has ended meanwhile.
  }
}

function isAlive(id: number): boolean {
  try {
    // A process that has ended and that nobody has waited for is no longer alive.
    return !/^State:\s+Z/mu.test(readFileSync(`/proc/${id}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** A cluster for one test alone, which is removed after it. */
export async function ownPostgres(settings: readonly string[] = []): Promise<PostgresCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-postgres-'))
  const cluster = new PostgresCluster(folder, await freePort(), settings)
  onTestFinished(() => cluster.remove())
  cluster.create()
  await cluster.start()
  return cluster
}

/** A database that somebody else runs, which nothing here starts or stops. Its user is the one of the URL for every test. */
class GivenPostgres extends PostgresCluster {
  readonly #url: string

  constructor(url: string) {
    super('', Number(new URL(url).port))
    this.#url = url
  }

  override url(): string {
    return this.#url
  }
}

let shared: Promise<PostgresCluster> | undefined

/**
 * The cluster of the whole run. The first process that wants it starts it; the others wait for that. With
 * POSTERN_TEST_STORE_URL it is that database, of any kind that speaks Postgres' protocol; the tests' schemas stay in it.
 */
export const sharedPostgres = (): Promise<PostgresCluster> => (shared ??= findOrStart())

async function findOrStart(): Promise<PostgresCluster> {
  const given = process.env['POSTERN_TEST_STORE_URL']
  if (given !== undefined) return new GivenPostgres(given)
  const folder = join(tmpdir(), SHARED_POSTGRES)
  const ready = `${folder}.port`
  try {
    mkdirSync(`${folder}.lock`)
  } catch {
    while (!existsSync(ready)) await pause(20)
    return new PostgresCluster(folder, Number(readFileSync(ready, 'utf8')))
  }
  const cluster = new PostgresCluster(folder, await freePort())
  cluster.create()
  await cluster.start()
  query(cluster, 'CREATE ROLE serializable SUPERUSER LOGIN')
  query(cluster, `ALTER ROLE serializable SET default_transaction_isolation = 'serializable'`)
  writeFileSync(`${ready}.new`, String(cluster.port))
  renameSync(`${ready}.new`, ready)
  return cluster
}

/** What is asked of the thread that keeps connections (query-thread.ts). */
export interface Asked {
  readonly url: string
  readonly sql: string
}

type Answered = { readonly printed: string } | { readonly failed: string }

export interface QueryThreadData {
  readonly port: MessagePort
  /** Its one number is 1 when an answer was sent. */
  readonly answered: Int32Array<SharedArrayBuffer>
}

/** How long a query may take, in milliseconds. */
const QUERY_WITHIN = 60_000

let thread: QueryThreadData | undefined

function startThread(): QueryThreadData {
  const { port1: port, port2 } = new MessageChannel()
  const answered = new Int32Array(new SharedArrayBuffer(4))
  const data: QueryThreadData = { port: port2, answered }
  const started = new Worker(new URL('query-thread.ts', import.meta.url), {
    workerData: data,
    transferList: [port2],
  })
  started.once('error', () => (thread = undefined))
  for (const each of [started, port]) each.unref()
  return { port, answered }
}

/** What psql prints for one statement, without headings. Blocks until it is answered. */
export function query(cluster: Pick<PostgresCluster, 'url'>, sql: string): string {
  const { port, answered } = (thread ??= startThread())
  Atomics.store(answered, 0, 0)
  const asked: Asked = { url: cluster.url(), sql }
  port.postMessage(asked)
  if (Atomics.wait(answered, 0, 0, QUERY_WITHIN) === 'timed-out') {
    // A late answer would be taken for that of the next query.
    port.close()
    thread = undefined
    throw new Error(`Postgres does not answer: ${sql}`)
  }
  const answer = receiveMessageOnPort(port)?.message as Answered
  if ('failed' in answer) throw new Error(`${answer.failed}: ${sql}`)
  return answer.printed.trim()
}

/** A name for a schema that no other test has. */
export const drawSchema = (): string => `t_${randomBytes(6).toString('hex')}`

/** The tables in a schema of their own, whose name it returns. */
export function makeTables(cluster: Pick<PostgresCluster, 'url'>): string {
  const schema = drawSchema()
  query(cluster, [makeSchema(schema), ...foundations(schema), ...tables(schema)].join(';'))
  return schema
}

/** How a test connects to a database whose tables are made. */
export const planTo = (url: string, settings: Partial<PostgresConfig> = {}): PostgresPlan =>
  planPostgres({
    url,
    schema: 'unused',
    connections: 4,
    deadline: 10_000,
    maxAge: 900_000,
    migrate: 'never',
    preparedStatements: true,
    ...settings,
  })
