import { describe, expect, it, vi } from 'vitest'
import { openFamiliarNetworks } from '../../../src/identity/guessing/familiar-networks.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { createDeriver } from '../../../src/identity/keys/signing/key-place.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { ManualClock } from '../../support/identity-under-test.ts'

const DAY = 24 * 60 * 60 * 1000
const ALICE = 'sub-alice'

function open() {
  const clock = new ManualClock()
  const store = new MemoryStore(clock)
  const networks = openFamiliarNetworks({ store, clock, deriver: createDeriver('secret') })
  const knows = async (address: string, who = ALICE) => (await networks.recall(who, address)).familiar
  const logIn = async (address: string, who = ALICE) => (await networks.recall(who, address)).remember()
  return { clock, store, knows, logIn, networks }
}

describe('C6.3.5 networks where a user has logged in', () => {
  it.each([
    ['192.0.2.7', '192.0.2.200', '192.0.3.7'],
    ['2001:db8:1:1200::1', '2001:db8:1:12ff:5::9', '2001:db8:1:1300::1'],
    ['::1', '::2', '1::1'],
  ])('C6.3.5 from %s also cover %s, not %s', async (at, near, far) => {
    const { knows, logIn } = open()
    expect(await knows(at)).toBe(false)
    await logIn(at)
    expect([await knows(at), await knows(near), await knows(far)]).toEqual([true, true, false])
    expect(await knows(at, 'sub-bob')).toBe(false)
  })

  it('C6.3.5 are eight at most, the latest, for 90 days', async () => {
    const { clock, knows, logIn } = open()
    for (let at = 0; at < 9; at++) await logIn(`192.0.${at}.1`)
    expect([await knows('192.0.0.1'), await knows('192.0.1.1'), await knows('192.0.8.1')]).toEqual([
      false,
      true,
      true,
    ])
    clock.at += 89 * DAY
    await logIn('192.0.1.1')
    clock.at += DAY
    expect([await knows('192.0.1.1'), await knows('192.0.8.1')]).toEqual([true, false])
  })

  it('C6.3.5 are kept as keyed hashes: the store holds no address', async () => {
    const { logIn, store } = open()
    await logIn('192.0.2.7')
    const kept = JSON.stringify(await store.list('login_networks'))
    expect(kept).not.toContain('192.0.2')
    expect(kept).toContain(
      createDeriver('secret').derive(JSON.stringify(['login network', ALICE, '192.0.2'])),
    )
  })

  it('C6.3.5 of two logins at once both are kept', async () => {
    const { knows, logIn } = open()
    await Promise.all(['192.0.1.1', '192.0.2.1', '192.0.3.1'].map((address) => logIn(address)))
    for (const address of ['192.0.1.1', '192.0.2.1', '192.0.3.1']) expect(await knows(address)).toBe(true)
  })

  it('C6.3.5 one that is known already is written once a day at most', async () => {
    const { clock, logIn, store } = open()
    const create = vi.spyOn(store, 'create')
    const replace = vi.spyOn(store, 'replace')
    for (let at = 0; at < 5; at++) await logIn('192.0.2.7')
    expect([create.mock.calls.length, replace.mock.calls.length]).toEqual([1, 0])
    clock.at += DAY
    await logIn('192.0.2.7')
    expect([create.mock.calls.length, replace.mock.calls.length]).toEqual([1, 1])
  })

  it('T5.5 while the store is down every network is familiar, and logging in fails for no reason of this', async () => {
    const { knows, logIn, store } = open()
    const find = vi.spyOn(store, 'find').mockRejectedValue(new Fault('identity_unavailable'))
    expect(await knows('192.0.2.7')).toBe(true)
    await logIn('192.0.2.7')
    find.mockRestore()
    vi.spyOn(store, 'create').mockRejectedValue(new Fault('identity_unavailable'))
    await logIn('192.0.2.7')
    expect(await knows('192.0.2.7')).toBe(false)
  })

  it('T3.9 a name that nobody has asks the store too', async () => {
    const { networks, store } = open()
    const find = vi.spyOn(store, 'find')
    expect((await networks.recall(undefined, '192.0.2.7')).familiar).toBe(false)
    expect(find).toHaveBeenCalledOnce()
  })
})
