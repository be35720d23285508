import { describe, expect, it } from 'vitest'
import type { RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { openEditors, RECORD_KINDS } from '../../../src/identity/directory/editors/editors.ts'
import { durationText, parseDuration } from '../../../src/base/kernel/units.ts'
import { onlyLessens } from '../../../src/base/config/lessens.ts'
import { viewOf } from '../../../src/base/config/schema.ts'
import { changeFacts } from '../../../src/identity/directory/editors/record-forms.ts'
import { Hasher } from '../../../src/identity/directory/hashing/hasher.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { actingOnClients } from '../../support/acting.ts'
import { catalogue, makeDirectory } from '../../support/directory.ts'
import { movableClock } from '../../support/movable-clock.ts'

async function opened() {
  const clock = movableClock()
  const steps: unknown[] = []
  const store = new MemoryStore(clock)
  const replace = store.replace.bind(store)
  store.replace = async (...given) => {
    const done = await replace(...given)
    steps.push(done ? 'changed' : 'overtaken')
    return done
  }
  const clients = actingOnClients(
    openEditors({
      hasher: new Hasher(),
      ...{ store, clock, catalogue, configured: await makeDirectory() },
      feed: {
        append: () => {
          steps.push('announced')
          return Promise.resolve()
        },
      },
      tokenRevoker: {
        end: (tokens: RevokedTokens) => {
          steps.push(tokens)
          return Promise.resolve({ sessions: 0, families: 1, codes: 2, consents: 0 })
        },
      },
      pause: () => Promise.resolve(),
    }).client,
  )
  const { secret } = await clients.add({
    ...{ id: 'acme', kind: 'customer', name: 'Acme', grants: ['password'], agreement: '2026-01-15' },
    ...{ businesses: ['ACME', 'GLOBEX'], scopes: ['fund.read'], accessTokenLifetime: '10m' },
  })
  steps.length = 0
  return { clients, steps, store, secret }
}

describe('C12.1.7 a planned change', () => {
  it('is not made if the record was changed since it was planned', async () => {
    const { clients, store } = await opened()
    const [one, other] = await Promise.all([
      clients.plan('acme', () => ({ name: 'One' })),
      clients.plan('acme', () => ({ accessTokenLifetime: '5m' })),
    ])
    expect(await one.commit()).toEqual([])
    expect(await other.commit()).toBeUndefined()
    expect((await clients.plan('acme', () => ({ accessTokenLifetime: '5m' }))).keys).toEqual([
      'accessTokenLifetime',
    ])
    expect((await store.find('directory_client', 'acme'))?.value).toMatchObject({
      record: { name: 'One', accessTokenLifetime: 600_000, secrets: [expect.any(String)] },
    })
  })

  it('ends what it takes away before it is made and after it is announced, and says how much', async () => {
    const { clients, steps } = await opened()
    const planned = await clients.plan('acme', () => ({ businesses: ['ACME'] }))
    const tokens = { client: 'acme', business: 'GLOBEX' }
    expect(await planned.commit()).toMatchObject([{ loss: { tokens }, ended: { families: 2, codes: 4 } }])
    expect(steps).toEqual([tokens, 'changed', 'announced', tokens])
  })

  it('C11.5 of exactly one version ends nothing if another is the latest, be it a switch or a removal', async () => {
    const { clients, steps, store } = await opened()
    const { editor } = clients
    const planned = [await editor.planSwitch('acme', true), await editor.planRemoval('acme')]
    await clients.rotateSecret('acme', 0)
    steps.length = 0
    for (const each of planned) expect(await each.commit(true)).toBeUndefined()
    expect(steps).toEqual(['overtaken'])
    expect((await store.find('directory_client', 'acme'))?.value).toMatchObject({
      record: { disabled: false },
    })
    const removal = await editor.planRemoval('acme')
    expect(await removal.commit(true)).toMatchObject([{ ended: { families: 1, codes: 2 } }])
    expect(steps.slice(1)).toEqual(['announced', { client: 'acme' }])
  })

  it.each([
    [{ scopes: [] }, true],
    [{ accessTokenLifetime: '9m' }, true],
    [{ requirePkce: true }, true],
    [{ businesses: ['GLOBEX', 'ACME'] }, true],
    [{ accessTokenLifetime: '11m' }, false],
    [{ accessTokenLifetime: undefined }, false],
    [{ scopes: ['fund.maintain'] }, false],
    [{ businesses: ['ACME'], name: 'Other' }, false],
    [{ authentication: ['client_secret_basic'] }, false],
    [{ resource: true }, false],
  ])('%j only takes away: %s', async (changes, expected) => {
    const { clients } = await opened()
    const { records } = await clients.plan('acme', () => changes)
    expect(onlyLessens(viewOf(RECORD_KINDS.client.schema), records.before, records.after)).toBe(expected)
  })
})

describe('C12.1.7 the facts of a change', () => {
  it('of long lists are what was added and removed, and of very long ones the keys', () => {
    const items = Array.from({ length: 1000 }, (_, index) => `scope.${index}`)
    const facts = (after: readonly string[]) =>
      changeFacts(RECORD_KINDS.client, {
        keys: ['scopes'],
        written: { before: { scopes: items }, after: { scopes: after } },
      })
    expect(facts([...items.slice(1), 'more'])).toEqual({ scopes: { added: ['more'], removed: ['scope.0'] } })
    expect(facts([])).toEqual({ keys: ['scopes'] })
  })
})

describe('durationText', () => {
  it.each([
    [0, '0ms'],
    [1500, '1500ms'],
    [90_000, '90s'],
    [600_000, '10m'],
    [86_400_000, '1d'],
  ])('of %i is %s', (ms, text) => {
    expect(durationText(ms)).toBe(text)
    expect(parseDuration(text)).toBe(ms)
  })
})
