import { ConfigurationError } from '../../src/base/config/problems.ts'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { administered } from '../support/administered.ts'
import { SqliteStore } from '../../src/state/stores/sqlite/sqlite.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { movableClock } from '../support/movable-clock.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { startPostern } from '../support/start-postern.ts'
import { SETTINGS } from '../support/settings.ts'

// A subject or client id that is given to somebody else: who gets it gets what the other holds.

const DORA = 'sub-of-dora'
const HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$ONkPwx0e0TE+rLENpK9ssg$OjB8Q/llxpQX5ZPdg/d3WkrQivUVr9DkS90gzdW84vs'

/** A data folder in whose store dora and the client tally stand, as the commands would have added them. */
async function storeOf(user: object = {}, client: object = {}): Promise<string> {
  const data = await dataFolder()
  const path = join(data, 'postern.sqlite')
  const store = await SqliteStore.open(
    { path, synchronous: 'normal', maxSize: undefined, deadline: 10_000 },
    movableClock(),
  )
  const record = { username: 'dora', subject: DORA, customers: [], access: {}, claims: {}, ...user }
  await store.create('directory_subject', DORA, { value: { username: 'dora' } })
  await store.create('directory_user', 'dora', { value: { record } })
  const tally = {
    id: 'tally',
    kind: 'customer',
    name: 'Tally',
    secrets: [],
    grants: ['password'],
    scopes: [],
  }
  await store.create('directory_client', 'tally', { value: { record: { ...tally, ...client }, ends: {} } })
  await store.close()
  return data
}

/** A data folder whose store knows the subject of dora as one whose user was removed. */
async function storeWithout(value: { readonly erased?: true }): Promise<string> {
  const data = await dataFolder()
  const path = join(data, 'postern.sqlite')
  const plan = { path, synchronous: 'normal', maxSize: undefined, deadline: 10_000 } as const
  const store = await SqliteStore.open(plan, movableClock())
  await store.create('former_subject', hash('sha256', DORA, 'base64url'), { value })
  await store.close()
  return data
}

type Directory = Configuration['directory']

/** Starts by the demo's directory with something changed; answers the problems, or none if it started. */
async function starting(
  data: string,
  change: (directory: Directory) => Partial<Directory>,
): Promise<string[]> {
  try {
    const service = await startPostern({
      data,
      keeps: 'store',
      change: (all) => ({ ...all, directory: { ...all.directory, ...change(all.directory) } }),
    })
    await service.close()
    return []
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    return error.problems.list.map(({ path, message }) => `${path.join('.')}  ${message}`)
  }
}

const renamed = (name: string) => (directory: Directory) => {
  const { bob, ...users } = directory.users
  return { users: { ...users, [name]: { ...bob!, subject: DORA } } }
}
const withTally = (directory: Directory) => ({
  clients: { ...directory.clients, tally: directory.clients['acme-books']! },
})

describe('C6.3.3 a subject and a client id are given once, over configuration and store', () => {
  it('a start refuses a configured user with the subject of another in the store', async () => {
    expect(await starting(await storeOf(), renamed('eve'))).toEqual([
      'directory.users.eve.subject  belongs to "dora", who is in the store: the user here would get what that one holds',
    ])
  })

  it('a start refuses a configured client with an id of the store', async () => {
    expect(await starting(await storeOf(), withTally)).toEqual([
      expect.stringMatching(/^directory\.clients\.tally {2}is in the store too/),
    ])
  })

  it('the configuration may take over a user under the same name, and a client that was disabled', async () => {
    expect(await starting(await storeOf(), renamed('dora'))).toEqual([])
    expect(await starting(await storeOf({}, { disabled: true }), withTally)).toEqual([])
  })

  it('a subject of which nobody became the owner refuses nobody', async () => {
    expect(await starting(await storeOf({ subject: 'another' }), renamed('eve'))).toEqual([])
  })

  it('check tells the same of the store beside the configuration, and makes none where there is none', async () => {
    const source = (name: string): string =>
      `extends: ${join(ROOT, 'config/demo.yaml')}\ndirectory: { users: { ${name}: { subject: ${DORA}, password: '${HASH}' } } }`
    const at = configFiles({ 'a.yaml': source('eve') })
    const told = async (data: string) =>
      (await SETTINGS.check(at('a.yaml'), { POSTERN_DATA: data })).list.map(({ path }) => path.join('.'))
    expect(await told(await storeOf())).toEqual(['directory.users.eve.subject'])
    expect(await told(await dataFolder())).toEqual([])
  })
})

describe('C11.5.8 the subject of a person whose data was erased', () => {
  const ERASED = 'directory.users.eve.subject  was that of a person whose data was erased'

  it('C11.5.8 is refused to a user of the configuration at a start, whatever the name; one that is free is not', async () => {
    const data = await storeWithout({ erased: true })
    expect(await starting(data, renamed('eve'))).toEqual([ERASED])
    expect(await starting(data, renamed('dora'))).toEqual([ERASED.replace('eve', 'dora')])
    expect(await starting(await storeWithout({}), renamed('eve'))).toEqual([])
  })

  it('C11.5.8 is told by check, among more users than are looked for one by one', async () => {
    const user = (subject: string): string => `{ subject: ${subject}, password: '${HASH}' }`
    const more = Array.from({ length: 1001 }, (_, n) => `u${n}: ${user(`s${n}`)}`)
    const source = (users: readonly string[]): string =>
      `extends: ${join(ROOT, 'config/demo.yaml')}\ndirectory: { users: { ${users.join(', ')} } }`
    const one = [`eve: ${user(DORA)}`]
    const at = configFiles({ 'few.yaml': source(one), 'many.yaml': source([...more, ...one]) })
    const data = await storeWithout({ erased: true })
    for (const name of ['few.yaml', 'many.yaml'] as const) {
      const { list } = await SETTINGS.check(at(name), { POSTERN_DATA: data })
      expect(list.map(({ path, message }) => `${path.join('.')}  ${message}`)).toEqual([ERASED])
    }
  })

  it('C11.5.8 is given to nobody by a service that has erased it: no user, no machine, and no configuration that is reloaded', async () => {
    const { call, acts, service } = await administered({ keeps: 'trail' })
    const dora = { username: 'dora', subject: DORA, password: 'a-long-enough-password' }
    expect((await call('POST', '/users', { body: dora })).status).toBe(201)
    const erased = await call('POST', `/subjects/${DORA}/erase`, { body: { reason: 'request 4711' } })
    expect([erased.status, erased.body]).toEqual([
      200,
      expect.objectContaining({ subject: DORA, pending: [] }),
    ])
    const before = acts()
    const refused = await call('POST', '/users', { body: { ...dora, username: 'eve' } })
    expect([refused.status, refused.body.error]).toEqual([
      409,
      expect.stringContaining('whose data was erased'),
    ])
    const machine = { id: DORA, kind: 'machine', name: 'M', businesses: ['ACME'], scopes: ['fund.maintain'] }
    const client = await call('POST', '/clients', { body: machine })
    expect([client.status, client.body.problems]).toEqual([
      ...[400, [expect.stringContaining('is, or was, the subject of a user')]],
    ])
    expect((await call('GET', `/clients/${DORA}`)).status).toBe(404)
    expect((await call('GET', '/users/eve')).status).toBe(404)
    const { directory } = service.configuration
    const next = { ...service.configuration, directory: { ...directory, ...renamed('eve')(directory) } }
    await expect(service.worker?.prepare(next)).rejects.toBeInstanceOf(ConfigurationError)
    expect(acts().filter((act) => !before.includes(act) && act.includes('success'))).toEqual([])
    // The name is nobody's, with another subject.
    expect((await call('POST', '/users', { body: { ...dora, subject: 'sub-of-another' } })).status).toBe(201)
  })
})
