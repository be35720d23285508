import { describe, expect, it } from 'vitest'
import { type AddedUses, DirectoryMethods } from '../../../src/identity/directory/records/people.ts'
import { CORE_FORM } from '../../../src/identity/directory/records/schema.ts'
import { CLIENT } from '../../../src/identity/directory/records/stored-directory.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { movableClock } from '../../support/movable-clock.ts'

const BASIC = {
  kind: 'partner',
  authentication: ['client_secret_basic'],
  secrets: ['sha256:…'],
  disabled: false,
  grants: ['password'],
} as const
const POST = { ...BASIC, authentication: ['client_secret_basic', 'client_secret_post'] } as const
const MACHINE = { ...BASIC, kind: 'machine', grants: ['client_credentials'] } as const
const KEYS = { ...BASIC, authentication: ['by_key'] } as const
/** As a configuration has it. A record of the store names no method. */
const PUBLIC = { ...BASIC, kind: 'public', authentication: ['none'], secrets: [] } as const
const STORED_PUBLIC = { ...PUBLIC, authentication: undefined } as const

const TOLD = { ...BASIC, ...{ told: true } } as const

const isNotified = (client: object): boolean => 'told' in client

/** A method and a feature, as an extension adds them. */
const ADDED: AddedUses = {
  all: ['by_key', 'more'],
  of: (client) => ('more' in client ? ['more'] : []),
}
const MORE = { ...BASIC, ...{ more: true } } as const

const PARTS = { isNotified, added: ADDED, form: CORE_FORM }

type Configured = typeof BASIC | typeof MORE | typeof POST | typeof KEYS | typeof PUBLIC | typeof MACHINE

function open(configured: readonly Configured[]) {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const read: string[] = []
  const methods = new DirectoryMethods({
    ...PARTS,
    configured,
    clock,
    store: {
      list: (kind, page) => {
        read.push(page?.after ?? '')
        return store.list(kind, page)
      },
    },
  })
  const add = (id: string, record: object) =>
    store.create(CLIENT, id, { value: { record: { id, ...record }, ends: {} } })
  return { add, clock, methods, read, known: async () => [...(await methods.current())].sort() }
}

describe('C6.3.2 the methods of authentication that some client has', () => {
  it('are those of the configuration and of the store', async () => {
    const { add, known } = open([BASIC])
    await add('app', STORED_PUBLIC)
    expect(await known()).toEqual(['client_secret_basic', 'none'])
  })

  it('C6.3.3a stand beside whether some client is told when a login ends', async () => {
    const { add, known } = open([BASIC])
    await add('app', TOLD)
    expect(await known()).toEqual(['client_secret_basic', 'logout_notices'])
  })

  it('come with the grant of machines, where there is one', async () => {
    const { add, clock, known } = open([PUBLIC])
    expect(await known()).toEqual(['none'])
    await add('nightly', MACHINE)
    clock.advance(60_000)
    expect(await known()).toContain('client_credentials')
  })

  it('stand beside features that an extension adds', async () => {
    expect(await open([BASIC, MORE]).known()).toEqual(['client_secret_basic', 'more'])
    const { add, known } = open([BASIC])
    await add('more', MORE)
    expect(await known()).toEqual(['client_secret_basic', 'more'])
  })

  it('are not those of disabled clients', async () => {
    const { add, known } = open([{ ...PUBLIC, disabled: true } as never])
    await add('post', { ...POST, disabled: true })
    expect(await known()).toEqual([])
  })

  it('are found on every page of the store, which is read once a minute at most', async () => {
    const { add, clock, known, read } = open([BASIC])
    for (let at = 0; at < 1001; at++)
      await add(`c${String(at).padStart(4, '0')}`, at < 1000 ? BASIC : STORED_PUBLIC)
    expect(await known()).toEqual(['client_secret_basic', 'none'])
    await known()
    expect(read).toEqual(['', 'c0999'])
    await add('d', POST)
    clock.advance(60_000)
    expect(await known()).toEqual(['client_secret_basic', 'client_secret_post', 'none'])
  })

  it('are not looked for where the configuration has all of them', async () => {
    const { known, read } = open([POST, KEYS, PUBLIC, TOLD, MACHINE, MORE])
    expect(await known()).toHaveLength(7)
    expect(read).toEqual([])
  })

  it('are those that were found before the time was over, of very many clients', async () => {
    const clients = Array.from({ length: 1000 }, (_, at) => ({
      ...{ key: `c${at}`, version: 1 },
      value: { record: { id: `c${at}`, ...STORED_PUBLIC }, ends: {} },
    }))
    const methods = new DirectoryMethods({
      ...PARTS,
      configured: [BASIC],
      clock: movableClock(),
      store: {
        list: (_kind, page) =>
          page?.after === undefined
            ? Promise.resolve(clients as never)
            : Promise.reject(new Fault('identity_unavailable')),
      },
    })
    expect([...(await methods.current())].sort()).toEqual(['client_secret_basic', 'none', 'unread_clients'])
  })

  it('stay known while the store cannot be read', async () => {
    const methods = new DirectoryMethods({
      ...PARTS,
      configured: [BASIC],
      clock: movableClock(),
      store: { list: () => Promise.reject(new Fault('identity_unavailable')) },
    })
    expect([...(await methods.current())]).toEqual(['client_secret_basic', 'unread_clients'])
  })
})
