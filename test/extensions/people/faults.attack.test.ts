import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seriesOf } from '../../support/metrics.ts'
import { postForm } from '../../support/oauth.ts'
import { bearer, send } from '../../support/requests.ts'
import { DEMO, KEEPS_NOTHING, spawnPostern, type SpawnedPostern } from '../../support/spawn-postern.ts'
import { issueToken } from '../../support/tokens.ts'

/**
 * C5.7: what code that finds people does in its own time is the fault of the login that it was done for, and never the
 * end of the process; where it blocks, nobody else waits. In a process of its own: the test runner has a listener for
 * uncaught exceptions too.
 */

const BUGGY = `
  import { readFileSync } from 'node:fs'
  import { parentPort } from 'node:worker_threads'
  console.log('said by the module with', process.execArgv.join(' '))
  const never = () => new Promise(() => undefined)
  const soon = (work) => setTimeout(work, 5)
  const boom = (what) => { throw new Error(what) }
  const user = (username) => ({ username, subject: 'subject-of-' + username, customers: ['acme-books'],
    access: { ACME: 'Administrator' } })
  const bugs = {
    timer: () => (soon(() => boom('in a timer')), never()),
    rejection: () => (soon(async () => boom('in a promise')), never()),
    forgotten: () => (Promise.reject(new Error('forgotten')), never()),
    listener: (_, { signal }) => (signal.addEventListener('abort', () => boom('in a listener')), never()),
    afterwards: () => (soon(() => boom('afterwards')), user('afterwards')),
    password: () => user('password'),
    loop: () => { for (;;); },
    exit: () => process.exit(0),
    memory: () => { for (const kept = []; ; ) kept.push(Array.from({ length: 1e5 }, (_, at) => 'x' + at)) },
    file: () => readFileSync(new URL('never-written', import.meta.url)),
    fine: () => user('fine'),
    library: () => {
      for (const told of ['ready', null, { call: 1 }, { opened: false }, { failed: 1 }]) parentPort.postMessage(told)
      return user('library')
    },
  }
  export default () => ({
    findUserByName: (name, call) => bugs[name]?.(name, call),
    findUserBySubject: (subject) => user(subject.slice(11)),
    verifyPassword: (user, password) => {
      if (user?.username === 'password') soon(() => boom('later: ' + password + ' $2b$10$abcdefghijklmnopqrstuv'))
      return password === 'right-password'
    },
    close: () => boom('cannot close'),
  })`

const folder = mkdtempSync(join(tmpdir(), 'postern-people-'))
let gateway: SpawnedPostern

const start = () => spawnPostern({ config: join(folder, 'buggy.yaml') })

beforeAll(async () => {
  writeFileSync(join(folder, 'buggy.mjs'), BUGGY)
  writeFileSync(
    join(folder, 'buggy.yaml'),
    `extends: ${DEMO}\n${KEEPS_NOTHING}\ndirectory:\n  people: { kind: module, file: buggy.mjs }\n`,
  )
  // Who reads it waits in the system, where nothing can end a thread.
  execFileSync('mkfifo', [join(folder, 'never-written')])
  gateway = await start()
})
afterAll(async () => {
  // A writer lets the thread go on that waits for the file.
  closeSync(openSync(join(folder, 'never-written'), constants.O_WRONLY | constants.O_NONBLOCK))
  // That it cannot close keeps the service from nothing.
  expect(await gateway.stop()).toBe(0)
  rmSync(folder, { recursive: true })
})

const login = (username: string, password = 'right-password', at = gateway) =>
  postForm(at, '/connect/token', {
    params: { grant_type: 'password', username, password, scope: 'fund.read target:b/ACME' },
  })

/** Lines are written once a second at the latest. */
const FLUSHED = { timeout: 30_000 }
const linesWith = (text: string): string[] =>
  gateway
    .output()
    .split('\n')
    .filter((line) => line.includes(text))

describe('T5.16 C5.7 code that finds people and stops its thread', () => {
  /** Calls with a token that ends nowhere near the module. */
  const call = async (token: string, at = gateway): Promise<number> =>
    (await send(at, { target: '/api/1.0/b/ACME/fund-data/fund-list', headers: bearer(token) })).status
  const events = (event: string) =>
    linesWith(event).map((line) => JSON.parse(line) as Record<string, unknown>)

  const replacements = async () => (await seriesOf(gateway)).get('postern_people_thread_replacements_total')

  it.each([
    ['loop', 'it did not answer for 2000 ms: its code blocks'],
    ['file', 'it did not answer for 2000 ms: its code blocks'],
    ['exit', 'it ended with exit code 0'],
    ['memory', expect.stringMatching(/more than 256 MiB of memory|did not answer/)],
  ])(
    'C5.7 %s is 503 of its login: calls for data are answered meanwhile, and logins afterwards',
    async (bug, why) => {
      const { access_token } = await issueToken(gateway, { scope: 'business.fund.list target:b/ACME' })
      const before = events('people_thread_replaced').length
      const counted = (await replacements()) ?? 0
      let over = false
      const isWaiting = (): boolean => !over
      const blocked = login(bug).finally(() => (over = true))
      const seen: number[] = []
      while (seen.length === 0 || (isWaiting() && seen.length < 50)) seen.push(await call(access_token))
      expect(new Set(seen)).toEqual(new Set([200]))
      expect(await blocked).toMatchObject({ status: 503, json: { error: 'temporarily_unavailable' } })
      const replaced = () => events('people_thread_replaced').slice(before)
      await expect.poll(replaced, FLUSHED).toHaveLength(1)
      await expect.poll(replacements, FLUSHED).toBe(counted + 1)
      expect(replaced()[0]).toMatchObject({
        ...{ level: 'error', module: 'directory.people', cause: expect.objectContaining({ message: why }) },
      })
      await expect.poll(async () => (await login('fine')).status, FLUSHED).toBe(200)
    },
  )

  it('C5.7 nobody hears what a library tells that takes itself for a worker', async () => {
    const before = events('people_thread_replaced').length
    for (const name of ['library', 'fine']) expect([name, (await login(name)).status]).toEqual([name, 200])
    expect(events('people_thread_replaced')).toHaveLength(before)
  })

  it('C5.7 keeps the process from ending only as long as it waits for what is closed', async () => {
    const own = await start()
    expect((await login('file', 'x', own)).status).toBe(503)
    expect((await login('fine', 'right-password', own)).status).toBe(200)
    // By a signal, since Node waits for all of its threads.
    expect(await own.stop()).toBeNull()
  })

  it('C5.7 says what it has to say where Postern says it', async () => {
    await expect.poll(() => linesWith('said by the module').length, FLUSHED).toBeGreaterThan(0)
    // The thread refuses add-ons that are not made for threads, also where the service has started itself with options of V8.
    expect(linesWith('said by the module')[0]).toContain('--force-context-aware')
  })
})

describe('C5.7 what code that finds people does in its own time', () => {
  it.each(['timer', 'rejection', 'forgotten', 'listener'])(
    'C5.7 %s is 503 of its login, and others go on',
    async (bug) => {
      const [answer, other] = await Promise.all([login(bug), login('fine')])
      expect(answer).toMatchObject({ status: 503, json: { error: 'temporarily_unavailable' } })
      expect(other.status).toBe(200)
    },
  )

  it('C5.7 what it throws when its call is over stands in the log', async () => {
    expect((await login('afterwards')).status).toBe(200)
    const failures = () => linesWith('afterwards').filter((line) => line.includes('module_failed'))
    await expect.poll(failures, FLUSHED).not.toEqual([])
    expect(JSON.parse(failures()[0] ?? '{}')).toMatchObject({
      ...{ level: 'error', event: 'module_failed', module: 'directory.people' },
    })
  })

  it('C5.7 T3.14 no password and no hash stand there, whenever it throws them', async () => {
    expect((await login('password')).status).toBe(200)
    await expect.poll(() => linesWith('later: '), FLUSHED).not.toEqual([])
    expect(gateway.output()).not.toMatch(/right-password|\$2b\$/)
  })
})
