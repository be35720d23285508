import { decodeJwt } from 'jose'
import { describe, expect, it } from 'vitest'
import { ConfigurationError } from '../../src/base/config/problems.ts'
import { SUBJECT } from '../../src/identity/directory/records/stored-directory.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { withFunds } from '../support/changed-funds.ts'
import { dataFolder } from '../support/data-folder.ts'
import { directoryEditors } from '../support/directory-editors.ts'
import { askAsMachine, withClient, withMachines } from '../support/machines.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { postern, startPostern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'

// T3.19: the subject of a machine's token is its own id. Who has that id as a subject would be taken for it, and it for them.

type Directory = Configuration['directory']

const ALICE = '45733adb-9b07-4d40-ae57-20cf9b802f51'
const MACHINE = {
  kind: 'machine',
  grants: ['client_credentials'],
  businesses: ['ACME'],
  scopes: ['fund.read'],
} as const

/** The problems of a start, as `path  message`; none if it started. */
async function starting(
  data: string,
  change: (all: Configuration) => Configuration,
): Promise<readonly string[]> {
  try {
    await (await startPostern({ data, keeps: 'store', change })).close()
    return []
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    return error.problems.list.map(({ path, message }) => `${path.join('.')}  ${message}`)
  }
}

const withUser =
  (name: string, subject: string) =>
  (all: Configuration): Configuration => {
    const { users } = all.directory
    const changed = { ...users, [name]: { ...users['bob']!, subject } } as Directory['users']
    return { ...all, directory: { ...all.directory, users: changed } }
  }

const machine = (id: string) => (all: Configuration) => withClient(all, id, MACHINE)

/** A data folder in whose store somebody stood, as the commands add them. */
async function storeWith(
  act: (
    editors: Awaited<ReturnType<typeof directoryEditors>>,
    service: Awaited<ReturnType<typeof startPostern>>,
  ) => Promise<unknown>,
): Promise<string> {
  const data = await dataFolder()
  const service = await startPostern({ data, keeps: 'store' })
  try {
    await act(await directoryEditors(service.configuration, service.world, () => Promise.resolve()), service)
  } finally {
    await service.close()
  }
  return data
}

const DORA = { username: 'dora', subject: 'sub-of-dora', password: 'a long enough password' }
const PAST = { ...DORA, username: 'past', subject: 'sub-of-past' }
const WRITTEN = { ...MACHINE, name: 'Nightly' }

describe('T3.19 the configuration', () => {
  /** A user who is there and one who was, one whom a people module has found, and a machine. */
  const filled = shared(() =>
    storeWith(async ({ users, clients }, { world }) => {
      await users.add(DORA)
      await users.add(PAST)
      await users.remove(PAST.username)
      await world.store.create(SUBJECT, 'theirs', { value: { username: 'found', module: true } })
      await clients.add({ ...WRITTEN, id: 'hourly' })
    }),
  )
  const refused = (id: string) => [
    `directory.clients.${id}  is, or was, the subject of a user: the tokens of this machine would be taken for theirs`,
  ]

  it('T3.19 C6.1.5a refuses a user whose subject is the id of a machine', async () => {
    const told = await starting(await dataFolder(), (all) => withUser('eve', 'nightly')(withMachines(all)))
    expect(told).toEqual([
      'directory.users.eve.subject  is the id of the machine "nightly": its tokens would be taken for this user’s',
    ])
  })

  it('T3.19 C6.1.5a takes the same id where the client is no machine', async () => {
    const alike = (all: Configuration) => withUser('eve', 'acme-books')(all)
    expect(await starting(await dataFolder(), alike)).toEqual([])
  })

  it('T3.19 C6.1.5a refuses a machine whose id is, or was, the subject of a user of the store', async () => {
    expect(await starting(await filled(), machine(DORA.subject))).toEqual(refused(DORA.subject))
    expect(await starting(await filled(), machine(PAST.subject))).toEqual(refused(PAST.subject))
    // For another user it is free, as it was.
    expect(await starting(await filled(), withUser('eve', PAST.subject))).toEqual([])
  })

  it('T3.19 C6.1.5a refuses a machine whose id is the subject of whom a people module has found', async () => {
    expect(await starting(await filled(), machine('theirs'))).toEqual(refused('theirs'))
  })

  it('T3.19 C6.1.5a refuses a user whose subject is the id of a machine of the store', async () => {
    expect(await starting(await filled(), withUser('eve', 'hourly'))).toEqual(
      expect.arrayContaining([
        'directory.users.eve.subject  is the id of the machine "hourly" of the store: its tokens would be taken for this user’s',
      ]),
    )
  })
})

describe('T3.19 the store', () => {
  const editors = shared(async () => {
    const service = await postern({ keeps: 'nothing', change: withMachines })
    return directoryEditors(service.configuration, service.world, () => Promise.resolve())
  })
  let drawn = 0
  /** The editors that the tests share, with names that no other test has. */
  const opened = async () => {
    drawn += 1
    const dora = { ...DORA, username: `dora-${drawn}`, subject: `sub-of-dora-${drawn}` }
    return { ...(await editors()), dora, hourly: `hourly-${drawn}`, books: `books-${drawn}` }
  }

  it('T3.19 C6.1.5a takes no machine with the subject of anybody, not of one who was removed', async () => {
    const { clients, users, dora } = await opened()
    await users.add(dora)
    for (const id of [ALICE, dora.subject])
      await expect(clients.add({ ...WRITTEN, id })).rejects.toThrow('The client has problems.')
    await users.remove(dora.username)
    await expect(clients.add({ ...WRITTEN, id: dora.subject })).rejects.toThrow('The client has problems.')
    await users.add({ ...dora, username: `${dora.username}.dale` })
  })

  it('T3.19 C6.1.5a takes no user with the id of a machine, until that is removed', async () => {
    const { clients, users, dora, hourly } = await opened()
    await clients.add({ ...WRITTEN, id: hourly })
    for (const subject of ['nightly', hourly])
      await expect(users.add({ ...dora, subject })).rejects.toThrow('The user has problems.')
    await clients.remove(hourly)
    await users.add({ ...dora, subject: hourly })
  })

  it('T3.19 C6.1.5a gives an id to one of a machine and a user that are added at once', async () => {
    const { clients, users, dora, hourly } = await opened()
    const user = await users.editor.planAdd({ ...dora, subject: hourly })
    const client = await clients.editor.planAdd({ ...WRITTEN, id: hourly })
    await client.commit()
    await expect(user.commit()).rejects.toThrow(`Subject "${hourly}" belongs to another user.`)
    const later = await clients.editor.planAdd({ ...WRITTEN, id: dora.subject })
    await users.add(dora)
    await expect(later.commit()).rejects.toThrow('is the subject of a user')
  })

  it('T3.19 C6.1.5a makes no machine of another client, and nothing else of a machine', async () => {
    const { clients, hourly, books } = await opened()
    await clients.add({ ...WRITTEN, id: hourly })
    const other = { kind: 'customer', grants: ['password'], agreement: '2026-01-15' }
    await clients.add({ ...WRITTEN, ...other, id: books })
    await expect(clients.plan(hourly, () => other)).rejects.toThrow('The client has problems.')
    const change = () => ({ kind: 'machine', grants: ['client_credentials'], agreement: undefined })
    await expect(clients.plan(books, change)).rejects.toThrow('The client has problems.')
  })
})

describe('T3.19 the service behind', () => {
  const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
  const started = shared(() => startUpstream())
  const serve = replacedService({ keeps: 'nothing' })
  const behind = async (changes: Parameters<typeof withFunds>[0]) => {
    const upstream = await started()
    const gateway = await serve({
      config: 'upstream.yaml',
      environment: { UPSTREAM_URL: upstream.url },
      change: (loaded) => withMachines(withFunds(changes)(loaded)),
    })
    const token: string = (await askAsMachine(gateway)).json.access_token
    const answer = await send(gateway, { target: LIST, headers: bearer(token) })
    return { upstream, gateway, answer }
  }

  it.each([
    ['a header', { headers: { 'X-Who': '{subject}' } }],
    ['a path', { path: '/users/{subject}/{action}' }],
    ['a query', { query: { user: '{subject}' } }],
    ['a credential', { auth: { header: { name: 'X-User', value: '{subject}' } } }],
  ] as const)('T3.19 C8.7 is sent nothing where %s names the user: 500', async (_, changes) => {
    const { answer, gateway, upstream } = await behind(changes)
    expect([answer.status, upstream.requests]).toEqual([500, []])
    const line = gateway.log().find(({ event, status }) => event === 'call' && status === 500)
    expect(line).toMatchObject({ reason: 'unsendable_value', client: 'nightly' })
    expect(line).not.toHaveProperty('subject')
  })

  it('T3.19 C8.2 gets a signed token without a subject', async () => {
    const { answer, upstream } = await behind({ identity: 'token' })
    expect(answer.status).toBe(200)
    const [token = ''] = upstream.requests[0]?.headers['x-postern-token'] ?? []
    expect(decodeJwt(token)).toMatchObject({ client_id: 'nightly', business: 'ACME' })
    expect(decodeJwt(token)).not.toHaveProperty('sub')
  })
})
