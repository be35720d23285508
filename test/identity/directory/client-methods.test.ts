import { describe, expect, it } from 'vitest'
import { DirectoryMethods } from '../../../src/identity/directory/records/people.ts'
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
  requirePar: false,
  dpop: 'off',
} as const
const POST = { ...BASIC, authentication: ['client_secret_basic', 'client_secret_post'] } as const
const MACHINE = { ...BASIC, kind: 'machine', grants: ['client_credentials'] } as const
const KEYS = { ...BASIC, authentication: ['private_key_jwt'] } as const
/** As a configuration has it. A record of the store names no method. */
const PUBLIC = { ...BASIC, kind: 'public', authentication: ['none'], secrets: [] } as const

const TOLD = { ...BASIC, ...{ told: true } } as const

const isNotified = (client: object): boolean => 'told' in client

const PLAIN = { ...BASIC, grants: ['authorization_code'] } as const
const PUSHING = { ...PLAIN, requirePar: true } as const

const PROVING = { ...BASIC, dpop: 'optional' } as const

type Configured =
  | typeof BASIC
  | typeof PROVING
  | typeof POST
  | typeof KEYS
  | typeof PUBLIC
  | typeof PLAIN
  | typeof PUSHING
  | typeof MACHINE

function open(configured: readonly Configured[]) {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const read: string[] = []
  const methods = new DirectoryMethods({
    configured,
    isNotified,
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
    await add('app', PUBLIC)
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

  it('C6.1.0 stand beside whether some client may send proofs', async () => {
    expect(await open([BASIC, PROVING]).known()).toEqual(['client_secret_basic', 'dpop'])
    const { add, known } = open([BASIC])
    await add('prover', PROVING)
    expect(await known()).toEqual(['client_secret_basic', 'dpop'])
  })

  it('are not those of disabled clients', async () => {
    const { add, known } = open([{ ...PUBLIC, disabled: true } as never])
    await add('post', { ...POST, disabled: true })
    expect(await known()).toEqual([])
  })

  it('are found on every page of the store, which is read once a minute at most', async () => {
    const { add, clock, known, read } = open([BASIC])
    for (let at = 0; at < 1001; at++) await add(`c${String(at).padStart(4, '0')}`, at < 1000 ? BASIC : PUBLIC)
    expect(await known()).toEqual(['client_secret_basic', 'none'])
    await known()
    expect(read).toEqual(['', 'c0999'])
    await add('d', POST)
    clock.advance(60_000)
    expect(await known()).toEqual(['client_secret_basic', 'client_secret_post', 'none'])
  })

  it('are not looked for where the configuration has all of them', async () => {
    const { known, read } = open([POST, KEYS, PUBLIC, TOLD, PLAIN, MACHINE, PROVING])
    expect(await known()).toHaveLength(8)
    expect(read).toEqual([])
  })

  it('are those that were found before the time was over, of very many clients', async () => {
    const clients = Array.from({ length: 1000 }, (_, at) => ({
      ...{ key: `c${at}`, version: 1 },
      value: { record: { id: `c${at}`, ...PUBLIC }, ends: {} },
    }))
    const methods = new DirectoryMethods({
      configured: [BASIC],
      isNotified,
      clock: movableClock(),
      store: {
        list: (_kind, page) =>
          page?.after === undefined
            ? Promise.resolve(clients as never)
            : Promise.reject(new Fault('identity_unavailable')),
      },
    })
    expect([...(await methods.current())].sort()).toEqual(['client_secret_basic', 'none', 'plain_requests'])
  })

  it('stay known while the store cannot be read', async () => {
    const methods = new DirectoryMethods({
      configured: [BASIC],
      isNotified,
      clock: movableClock(),
      store: { list: () => Promise.reject(new Fault('identity_unavailable')) },
    })
    expect([...(await methods.current())]).toEqual(['client_secret_basic', 'plain_requests'])
  })
})

describe('C6.3.2 whether every client must push its requests', () => {
  it.each([
    ['some must and some need not', [PUSHING], PLAIN, ['plain_requests', 'pushed_requests']],
    ['all that use the code grant must', [PUSHING], BASIC, ['pushed_requests']],
    [
      'who need not is disabled',
      [PUSHING, { ...PLAIN, disabled: true } as never],
      BASIC,
      ['pushed_requests'],
    ],
    ['none uses the code grant', [BASIC], BASIC, []],
  ])('C6.3.2 %s', async (_, configured, stored, expected) => {
    const { add, known } = open(configured)
    await add('stored', stored)
    expect((await known()).filter((use) => use.endsWith('_requests'))).toEqual(expected)
  })

  it('C6.3.2 is not believed while the store cannot be read', async () => {
    const clock = movableClock()
    const store = new MemoryStore(clock)
    let isDown = true
    const list: MemoryStore['list'] = (kind, page) =>
      isDown ? Promise.reject(new Fault('identity_unavailable')) : store.list(kind, page)
    const methods = new DirectoryMethods({ configured: [PUSHING], isNotified, clock, store: { list } })
    expect(await methods.current()).toContain('plain_requests')
    isDown = false
    clock.advance(60_000)
    expect(await methods.current()).not.toContain('plain_requests')
  })
})
