import { describe, expect, it } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { DirectoryMethods } from '../../../src/identity/directory/records/people.ts'
import { CLIENT } from '../../../src/identity/directory/records/stored-directory.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { openTestIdentity } from '../../support/identity-under-test.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { READING } from '../../support/settings.ts'

const BASIC = {
  kind: 'partner',
  authentication: ['client_secret_basic'],
  secrets: ['sha256:…'],
  disabled: false,
  grants: ['password'],
  requirePar: false,
  dpop: 'off',
} as const
const PLAIN = { ...BASIC, grants: ['authorization_code'] } as const
const PUSHING = { ...PLAIN, requirePar: true } as const
const PROVING = { ...BASIC, dpop: 'optional' } as const

type Configured = typeof BASIC | typeof PROVING | typeof PLAIN | typeof PUSHING

const { security } = openTestIdentity().deps

const PROOFS = 'dpop_signing_alg_values_supported'
const MUST_PUSH = { require_pushed_authorization_requests: true }

function open(configured: readonly Configured[]) {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  let isDown = false
  const list: MemoryStore['list'] = (kind, page) =>
    isDown ? Promise.reject(new Fault('identity_unavailable')) : store.list(kind, page)
  const parts = { isNotified: () => false, added: security.uses, form: READING.clientForm }
  const methods = new DirectoryMethods({ ...parts, configured, clock, store: { list } })
  const add = (id: string, record: object) =>
    store.create(CLIENT, id, { value: { record: { id, ...record }, ends: {} } })
  return {
    ...{ add, clock },
    fail: (down: boolean) => (isDown = down),
    had: () => methods.current(),
    mustPush: async () => security.metadata(await methods.current()),
  }
}

describe('C6.1.0 whether some client may send proofs', () => {
  it('C6.1.0 is told where one of the configuration or of the store may', async () => {
    expect(security.proofMetadata(await open([BASIC, PROVING]).had())).toHaveProperty(PROOFS)
    const { add, had } = open([BASIC])
    await add('prover', PROVING)
    expect(security.proofMetadata(await had())).toHaveProperty(PROOFS)
    expect(security.proofMetadata(await open([BASIC]).had())).toEqual({})
  })
})

describe('C6.3.2 whether every client must push its requests', () => {
  it.each([
    ['some must and some need not', [PUSHING], PLAIN, {}],
    ['all that use the code grant must', [PUSHING], BASIC, MUST_PUSH],
    ['who need not is disabled', [PUSHING, { ...PLAIN, disabled: true } as never], BASIC, MUST_PUSH],
    ['none uses the code grant', [BASIC], BASIC, {}],
  ])('C6.3.2 %s', async (_, configured, stored, expected) => {
    const { add, mustPush } = open(configured)
    await add('stored', stored)
    expect(await mustPush()).toEqual(expected)
  })

  it('C6.3.2 is not believed while the store cannot be read', async () => {
    const { clock, fail, mustPush } = open([PUSHING])
    fail(true)
    expect(await mustPush()).toEqual({})
    fail(false)
    clock.advance(60_000)
    expect(await mustPush()).toEqual(MUST_PUSH)
  })
})
