import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Operator } from '../../../src/base/contracts/records/audited-change.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileScopes } from '../../../src/base/config/scopes/schema.ts'
import { NO_TRAIL } from '../../../src/base/contracts/records/audit.ts'
import { compileDirectory } from '../../../src/identity/directory/records/compile.ts'
import { holdingsOf } from '../../../src/identity/directory/records/holdings.ts'
import type { SharedParts } from '../../../src/base/contracts/records/store.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { digestOfHoldings } from '../../../src/serve/parts/holdings-record.ts'
import { ConfigurationLoads, Reloader, type ReloaderParts } from '../../../src/serve/parts/reload.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { configFiles } from '../../support/config-files.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { keepNotes } from '../../support/notes.ts'
import { sealKey } from '../../support/seal-key.ts'
import { ROOT } from '../../support/spawn-postern.ts'
import { READING, SETTINGS } from '../../support/settings.ts'

const BUSINESSES = '{"code":"ONE","name":"One","funds":[]}\n{"code":"TWO","name":"Two","funds":[]}\n'

/** What a worker opens: it reads the directory itself. */
async function openedNow({ scopes, directory }: Configuration): Promise<string> {
  const told = new Problems()
  const catalogue = compileScopes(scopes, told)
  return digestOfHoldings(holdingsOf(await compileDirectory(directory, catalogue, told, READING), catalogue))
}

/** A reloader beside a service that acts out `meanwhile` within each `prepare`. */
async function startReloader(
  meanwhile: (file: string, attempt: number) => void,
  {
    adopting = () => Promise.resolve(),
    audit = NO_TRAIL,
    store = new MemoryStore(systemClock),
    environment = {},
  }: Partial<ReloaderParts> = {},
  text = `extends: ${join(ROOT, 'config/demo.yaml')}\n`,
) {
  const at = configFiles({
    'a.yaml': `${text}directory: { files: { businesses: list.jsonl } }\n`,
    'list.jsonl': BUSINESSES,
  })
  const { configuration, problems } = SETTINGS.load(at('a.yaml'), environment)
  if (configuration === undefined) throw new Error(JSON.stringify(problems.list))
  const done: string[] = []
  const recorder = keepNotes()
  let attempts = 0
  const reloader = await Reloader.open(configuration, {
    file: at('a.yaml'),
    files: [],
    audit,
    environment,
    settings: SETTINGS,
    clientForm: READING.clientForm,
    pool: {
      holdingsDigest: await openedNow(configuration),
      prepare: async (next) => {
        attempts += 1
        meanwhile(at('list.jsonl'), attempts)
        return openedNow(next)
      },
      commit: () => Promise.resolve(void done.push('commit')),
      abort: () => Promise.resolve(void done.push('abort')),
    },
    rules: { revoke: (tokens) => Promise.resolve(void done.push(`revoke ${JSON.stringify(tokens)}`)) },
    tokenRevoker: { end: () => Promise.resolve({} as never) },
    store,
    adopting,
    recorder,
    changed: () => undefined,
    read: () => undefined,
  })
  return {
    reload: (order: Operator = { via: 'test' }) => reloader.reload(order),
    ...{ done, notes: recorder, file: at('a.yaml') },
  }
}

describe('a reload whose files change while it reads them', () => {
  it('T3.4 takes rights away by what is served: it reads once more', async () => {
    const { reload, done } = await startReloader((file, attempt) => {
      if (attempt === 1) writeFileSync(file, '{"code":"ONE","name":"One","funds":[]}\n')
    })
    expect(await reload()).toMatchObject({ outcome: 'reloaded', revoked: 1 })
    expect(done[0]).toBe('abort')
    expect(done.filter((each) => each.startsWith('revoke'))[0]).toBe('revoke {"business":"TWO"}')
  })

  it('T3.4 revokes nothing where a file is half written for a moment', async () => {
    const { reload, done } = await startReloader((file, attempt) => {
      writeFileSync(file, attempt === 1 ? BUSINESSES.slice(0, 30) : BUSINESSES)
    })
    expect(await reload()).toMatchObject({ outcome: expect.any(String) as string })
    expect(done.filter((each) => each.startsWith('revoke'))).toEqual([])
  })

  it('is refused where they never settle, and changes nothing', async () => {
    const { reload, done } = await startReloader((file, attempt) => {
      writeFileSync(file, `${BUSINESSES}{"code":"MORE${attempt}","name":"More","funds":[]}\n`)
    })
    expect(await reload()).toEqual({
      outcome: 'refused',
      problems: ['its files change while they are read — it is tried again by itself'],
      cause: 'files',
    })
    expect(done).toEqual(['abort', 'abort', 'abort'])
  })
})

describe('C11.5.4 a reload that is refused though its files have no mistake', () => {
  /** A reload whose store is away `times` times, tried again by timers that the test winds. */
  async function startWithout(times: number) {
    let missing = times
    const { reload, file, notes } = await startReloader(() => undefined, {
      adopting: () =>
        missing-- > 0
          ? Promise.reject(new Fault('identity_unavailable', { detail: 'the store is slow' }))
          : Promise.resolve(),
    })
    const timers = manualAfter()
    const again = (operator: Operator): void => {
      trying = order(operator)
    }
    const loads = new ConfigurationLoads(systemClock, again, timers.after)
    const orders: Operator[] = []
    const order = async (operator: Operator): Promise<void> => {
      orders.push(operator)
      loads.ended(await reload(operator), operator)
    }
    let trying: Promise<void> = Promise.resolve()
    const fire = async (): Promise<void> => {
      await timers.fire()
      await trying
    }
    return { ...{ file, loads, notes, order, orders, timers }, fire }
  }

  it('C11.5.4 is tried again by itself, later and later up to 30 s, until it is in force', async () => {
    const { fire, loads, notes, order, orders, timers } = await startWithout(7)
    const by: Operator = { via: 'file change', channel: 'file' }
    await order(by)
    expect(loads.refused).toMatchObject({
      ...{ via: 'file change', cause: 'store' },
      problems: [expect.stringMatching(/^the store is out of reach.* — it is tried again by itself$/)],
    })
    expect(notes.events).toEqual(['reload_failed', 'configuration_refused'])
    const waits: number[] = []
    while (timers.delays().length > 0) {
      waits.push(...timers.delays())
      await fire()
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
    expect(loads.refused).toBeUndefined()
    expect(orders.every((each) => each === by)).toBe(true)
  })

  it('C11.5.4 is tried again where the store is away and its seals are others', async () => {
    const withSeal = (id: string): string =>
      `extends: ${join(ROOT, 'config/upstream.yaml')}\nadmin: { token: { env: TOKEN } }\nstore: { kind: postgres, url: 'postgres://a:b@127.0.0.1:9/none', seal: [{ id: ${id}, key: { env: SEAL } }] }\n`
    const { file, reload } = await startReloader(
      () => undefined,
      {
        store: Object.assign(new MemoryStore(systemClock), {
          list: () => Promise.reject(new Fault('identity_unavailable', { detail: 'the store is slow' })),
          shared: { maxAge: 1000 } as SharedParts,
        }),
        environment: { SEAL: sealKey('a').key, TOKEN: 'a-token-of-this-test-0123456789' },
      },
      withSeal('a'),
    )
    writeFileSync(file, readFileSync(file, 'utf8').replace(withSeal('a'), withSeal('b')))
    expect(await reload()).toEqual({
      ...{ outcome: 'refused', cause: 'store' },
      problems: [expect.stringMatching(/^the store is out of reach.* — it is tried again by itself$/)],
    })
  })

  it('C11.5.4 is not tried again once its file has a mistake, nor where the service stops', async () => {
    const { file, fire, loads, order, timers } = await startWithout(100)
    await order({ via: 'test' })
    writeFileSync(file, 'backends: 7\n')
    await fire()
    expect([loads.refused?.cause, timers.delays()]).toEqual([undefined, []])
    const other = await startWithout(100)
    await other.order({ via: 'test' })
    other.loads.stop()
    expect(other.timers.delays()).toEqual([])
  })

  it('C11.5.4 has one attempt ahead of it, however often it is ordered', async () => {
    const { order, timers } = await startWithout(100)
    for (let count = 0; count < 3; count += 1) await order({ via: 'test' })
    expect(timers.delays()).toEqual([4000])
  })
})
