import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { checkStore } from '../../../src/extensions/postgres/schema.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { unfitSeals } from '../../../src/serve/parts/key-plan.ts'
import { SETTINGS } from '../../../src/serve/start/settings.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { sealKey } from '../../support/seal-key.ts'

describe('T7 the seals of a configuration', () => {
  const problems = (...seal: readonly { id: string; key: string }[]): readonly string[] => {
    const problems = new Problems()
    const store = { kind: 'postgres', url: 'postgres://user@host/database', seal }
    checkStore(store, problems)
    return problems.list.map(({ path, message, hint }) => `${path.join('.')} ${message} ${hint ?? ''}`.trim())
  }

  it('T7 are keys, each with a name of its own; what is wrong is told without the key', () => {
    expect(problems(sealKey('a'), sealKey('b'))).toEqual([])
    expect(problems(sealKey('a'), { id: 'a', key: 'hunter2' })).toEqual([
      'store.seal.1.key is no key it must be 32 bytes, as `openssl rand -base64 32` prints them',
      'store.seal.1.id is the name of another seal too',
    ])
  })

  it('T7 are told behind the address', () => {
    const problems = new Problems()
    checkStore(
      { kind: 'postgres', url: 'http://host', seal: [{ id: 'a', key: 'hunter2' }] } as never,
      problems,
    )
    expect(problems.list.map(({ path }) => path.join('.'))).toEqual(['store.url', 'store.seal.0.key'])
  })
})

describe('T7 other seals of a sidecar, whose store is in memory', () => {
  it('T7 can be put in force', async () => {
    const store = new MemoryStore(systemClock)
    const sealed = (...seal: readonly { id: string; key: string }[]): Configuration =>
      ({ store: { kind: 'postgres', seal } }) as unknown as Configuration
    const shared = { kinds: SETTINGS.added.stores, store }
    expect(await unfitSeals(sealed(sealKey('a')), sealed(sealKey('b')), shared)).toBeUndefined()
  })
})
