import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { PROGRAM } from '../support/program.ts'
import { shared } from '../support/shared.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { answerJson, startUpstream } from '../support/start-upstream.ts'
import { poolConfig, startPool } from '../support/worker-pool.ts'

/** T3.26: signals that would open Node's debugger in a process that holds the signing keys. */

const DEBUGGER = 9229
const LISTENS = '0A'

/** The sockets of this machine that listen at the debugger's port. */
const socketsOfDebuggers = (): ReadonlySet<string> =>
  new Set(
    readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(
        ([, local = '', , state]) =>
          state === LISTENS && Number.parseInt(local.split(':')[1] ?? '', 16) === DEBUGGER,
      )
      .map((fields) => `socket:[${fields[9]}]`),
  )

function opensDebugger(pid: number): boolean {
  const debuggers = socketsOfDebuggers()
  return readdirSync(`/proc/${pid}/fd`).some((fd) => {
    try {
      return debuggers.has(readlinkSync(`/proc/${pid}/fd/${fd}`))
    } catch {
      return false
    }
  })
}

/** What Node says where it opens its debugger, and where another process has the port. */
const OF_DEBUGGER = /debugger|inspector/i

/** A service that keeps what it is asked waiting, until `answer` is called. */
async function startHeld() {
  const asked = Promise.withResolvers<() => void>()
  const server = createServer((_request, response) => asked.resolve(() => response.end('{}')))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked: asked.promise }
}

describe('T3.26 SIGUSR1', () => {
  // An operator's own settings of memory: the service does not start itself once more, by which it would tell Node.
  const serve = shared(async () => {
    const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
    const environment = { MALLOC_ARENA_MAX: '2' }
    return startPool(poolConfig(upstream.url), { environment, withoutSettings: true })
  })

  it('T3.26 opens no debugger in the supervisor nor in its workers, which serve on', async () => {
    const pool = await serve()
    const processes = [pool.pid, ...pool.workers()]
    for (const pid of processes) process.kill(pid, 'SIGUSR1')
    // Every process does something before it is looked at.
    await pool.order('POST', '/reload')
    expect((await pool.call(await pool.token())).status).toBe(200)
    expect(pool.workers()).toEqual(processes.slice(1))
    expect(processes.filter(opensDebugger)).toEqual([])
    expect(pool.output()).not.toMatch(OF_DEBUGGER)
  })

  it('T3.26 opens none in a worker from its first moment on, however the service was started', async () => {
    const pool = await serve()
    const optionsOf = (pid: number): readonly string[] =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    expect(optionsOf(pool.pid)).not.toContain('--disable-sigusr1')
    for (const pid of pool.workers()) expect(optionsOf(pid)).toContain('--disable-sigusr1')
  })

  it('T3.26 opens no debugger in a command that runs', async () => {
    const service = await startHeld()
    const args = [PROGRAM, 'status', '--admin-url', service.address]
    const command = spawn(process.execPath, args, {
      cwd: ROOT,
      env: { ...process.env, POSTERN_ADMIN_TOKEN: 'of-an-operator' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [said, answer] = [text(command.stderr), await service.asked]
    const ended = once(command, 'exit')
    command.kill('SIGUSR1')
    answer()
    const [, signal] = await ended
    expect(signal).toBeNull()
    expect(await said).not.toMatch(OF_DEBUGGER)
  })
})

describe('signals to the whole process group', () => {
  it('SIGUSR2 leaves workers alone, and SIGQUIT drains as SIGTERM does', async () => {
    const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
    const pool = await startPool(poolConfig(upstream.url))
    const workers = pool.workers()
    for (const pid of workers) process.kill(pid, 'SIGUSR2')
    await pool.order('POST', '/reload')
    expect(pool.workers()).toEqual(workers)
    for (const pid of [pool.pid, ...workers]) process.kill(pid, 'SIGQUIT')
    expect(await pool.stop()).toBe(0)
    expect(pool.log().filter(({ event }) => event === 'worker_died')).toEqual([])
  })
})
