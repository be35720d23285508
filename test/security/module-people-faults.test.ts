import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postForm } from '../support/oauth.ts'
import { DEMO, spawnPostern, type SpawnedPostern } from '../support/spawn-postern.ts'

/**
 * C5.7: what code that finds people does in its own time is the fault of the login that it was done for, and never the
 * end of the process. In a process of its own: the test runner has a listener for uncaught exceptions too.
 */

const BUGGY = `
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
    fine: () => user('fine'),
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

beforeAll(async () => {
  writeFileSync(join(folder, 'buggy.mjs'), BUGGY)
  writeFileSync(
    join(folder, 'buggy.yaml'),
    `extends: ${DEMO}\ndirectory:\n  people: { kind: module, file: buggy.mjs }\n`,
  )
  gateway = await spawnPostern({ config: join(folder, 'buggy.yaml') })
})
afterAll(async () => {
  // That it cannot close keeps the service from nothing.
  expect(await gateway.stop()).toBe(0)
  rmSync(folder, { recursive: true })
})

const login = (username: string, password = 'right-password') =>
  postForm(gateway, '/connect/token', {
    params: { grant_type: 'password', username, password, scope: 'fund.read target:b/ACME' },
  })

/** Lines are written once a second at the latest. */
const FLUSHED = { timeout: 5000 }
const linesWith = (text: string): string[] =>
  gateway
    .output()
    .split('\n')
    .filter((line) => line.includes(text))

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
