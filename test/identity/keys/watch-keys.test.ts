import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openKeys } from '../../../src/identity/keys/signing/service-keys.ts'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import {
  compareWithHistory,
  KeyWatch,
  rememberedKeys,
  rememberKeys,
} from '../../../src/identity/keys/signing/watch-keys.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { eventually } from '../../support/eventually.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { ROTATION } from '../../support/keys-for-tests.ts'
import { settled } from '../../support/settled.ts'

/** Milliseconds between two readings of the folder. */
const INTERVAL = 250

interface Note {
  readonly level: string
  readonly event: string
  readonly facts: Readonly<Record<string, unknown>> | undefined
}

/** Keys in a folder of their own, and their watch. Its readings come when the test says so. */
async function watched(prepare: (store: MemoryStore) => Promise<unknown> = () => Promise.resolve()) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
  const data = await mkdtemp(join(tmpdir(), 'postern-keys-'))
  onTestFinished(() => rm(data, { recursive: true, force: true }))
  const folder = join(data, 'keys')
  const clock = movableClock()
  const keys = await openKeys(
    { place: new FolderKeys(folder), algorithms: ['ES256'], rotation: ROTATION },
    clock,
  )
  const store = new MemoryStore(clock)
  await prepare(store)
  const notes: Note[] = []
  const ended = { secretReplaced: vi.fn(() => Promise.resolve()) }
  const watch = new KeyWatch({
    keys,
    store,
    recorder: { note: (level, event, facts) => void notes.push({ level, event, facts }) },
    secretReplaced: () => ended.secretReplaced(),
  })
  await watch.start()
  const stop = (): Promise<void> => watch.stop()
  onTestFinished(stop)
  const finished = vi.spyOn(keys, 'rotateIfDue')
  const refreshed = vi.spyOn(keys, 'refreshSecret')
  /** One reading from its start to its end, and the end of the next, so that none is on its way to the folder. */
  const look = async (): Promise<void> => {
    const before = finished.mock.calls.length
    await eventually(() => {
      vi.advanceTimersByTime(INTERVAL)
      expect(finished.mock.calls.length).toBeGreaterThan(before + 1)
    })
    await Promise.allSettled(
      [finished, refreshed].flatMap(({ mock }) => mock.results.map(({ value }) => value)),
    )
    await settled()
  }
  const events = (): readonly string[] => notes.map(({ level, event }) => `${level} ${event}`)
  return { folder, clock, keys, store, notes, events, ended, watch, stop, look, finished }
}

describe('C6.3.4 the keys at the start', () => {
  it('C6.3.4 nothing is told of a first start, and the keys are remembered', async () => {
    const { events, store, keys } = await watched()
    expect(events()).toEqual([])
    expect(await rememberedKeys(store)).toEqual(keys.kids)
  })

  it('C6.3.4 a folder that was lost is told, with what it means', async () => {
    const { notes, folder } = await watched((store) => rememberKeys(['another'], store))
    expect(notes).toEqual([
      { level: 'error', event: 'signing_keys_lost', facts: { meaning: expect.any(String) } },
    ])
    expect(notes[0]?.facts?.['meaning']).toContain(folder)
  })

  it('C6.3.4 a store that cannot be reached stops nothing: it is told, and the keys are watched', async () => {
    const { events, look, clock, keys, store } = await watched((unreachable) => {
      unreachable.find = () => Promise.reject(new Fault('identity_unavailable'))
      return Promise.resolve()
    })
    expect(events()).toEqual(['warn signing_keys_history_unknown'])
    store.find = MemoryStore.prototype.find.bind(store)
    clock.advance(29 * 86_400_000)
    await look()
    expect(keys.kids).toHaveLength(2)
  })
})

describe('C11.5.3 a process that is to follow', () => {
  it('uses the keys and the secret that are in the place when it says so, whatever it was reading before', async () => {
    const { keys, clock, watch, ended } = await watched()
    const reading = keys.refresh()
    const looking = watch.follow()
    const before = keys.secretId
    await keys.place.replaceSecret()
    const signsFrom = Math.floor(clock.now() / 1000)
    await keys.place.create({ algorithm: 'ES256', generation: 2, signsFrom }, clock)
    await keys.place.remove('ES256-1')
    await watch.follow()
    expect(keys.states).toMatch(/^ES256-2 [\w-]{43} signing$/)
    expect(keys.secretId).not.toBe(before)
    expect(ended.secretReplaced).toHaveBeenCalledTimes(1)
    await Promise.allSettled([reading, looking])
  })

  it('says why it cannot', async () => {
    const { folder, watch } = await watched()
    await rename(folder, `${folder}-away`)
    await expect(watch.follow()).rejects.toMatchObject({ name: 'KeyError' })
    await rename(`${folder}-away`, folder)
    await watch.follow()
  })
})

describe('C6.3.4 the watch over the keys', () => {
  it('C6.3.4 makes the keys that are due, tells each change once, and remembers the new key', async () => {
    const { events, notes, look, clock, keys, store } = await watched()
    await look()
    await look()
    expect(events()).toEqual([])
    clock.advance(29 * 86_400_000)
    await look()
    await look()
    expect(events()).toEqual(['info signing_keys_changed'])
    expect(notes[0]?.facts?.['keys']).toEqual([
      expect.stringMatching(/^ES256-1 [\w-]{43} signing$/),
      expect.stringMatching(/^ES256-2 [\w-]{43} announced$/),
    ])
    expect(await rememberedKeys(store)).toEqual(keys.kids)
  })

  it('T3.10 tells a replaced secret, and has the families ended, again until that succeeds', async () => {
    const { events, look, folder, ended } = await watched()
    await look()
    expect(ended.secretReplaced).not.toHaveBeenCalled()
    ended.secretReplaced.mockRejectedValueOnce(new Fault('identity_unavailable'))
    await new FolderKeys(folder).replaceSecret()
    await look()
    await look()
    expect(ended.secretReplaced).toHaveBeenCalledTimes(2)
    expect(events()).toEqual(['warn refresh_token_secret_replaced', 'error signing_keys_unreadable'])
    await look()
    expect(ended.secretReplaced).toHaveBeenCalledTimes(2)
  })

  it('T7 tells once that the folder cannot be used, and once more if that ended in between', async () => {
    const { notes, look, folder, keys } = await watched()
    const { kids } = keys
    for (let time = 1; time <= 2; time++) {
      await rename(folder, `${folder}.away`)
      await look()
      await look()
      await rename(`${folder}.away`, folder)
      await look()
      await look()
    }
    const reason = expect.stringContaining(folder)
    const note = { level: 'error', event: 'signing_keys_unreadable', facts: { reason } }
    expect(notes).toEqual([note, note])
    expect(keys.kids).toEqual(kids)
  })

  it('T7 tells another reason also while the first goes on', async () => {
    const { notes, look, folder } = await watched()
    await writeFile(join(folder, 'ES256-1.jwk'), 'damaged')
    await look()
    await writeFile(join(folder, 'successors.secret'), 'damaged')
    await writeFile(join(folder, 'ES256-1.jwk'), '{}')
    await look()
    expect(notes.map(({ facts }) => facts?.['reason'])).toEqual([
      expect.stringContaining('not JSON'),
      expect.not.stringContaining('not JSON'),
    ])
  })

  it('C6.3.4 tells that a new key could not be remembered', async () => {
    const { events, look, clock, store } = await watched()
    store.find = () => Promise.reject(new Fault('identity_unavailable'))
    clock.advance(29 * 86_400_000)
    await look()
    await look()
    expect(events()).toEqual(['info signing_keys_changed', 'error signing_keys_unreadable'])
  })

  it('C6.3.4 reads the folder once at a time, and not after its end', async () => {
    const { finished, stop, look } = await watched()
    await look()
    const held = Promise.withResolvers<undefined>()
    finished.mockImplementation(() => held.promise)
    await eventually(() => {
      vi.advanceTimersByTime(INTERVAL)
      expect(finished.mock.results.at(-1)?.value).toBe(held.promise)
    })
    const before = finished.mock.calls.length
    vi.advanceTimersByTime(10 * INTERVAL)
    expect(finished.mock.calls.length).toBe(before)
    held.resolve(undefined)
    finished.mockImplementation(() => Promise.resolve())
    await eventually(() => {
      vi.advanceTimersByTime(INTERVAL)
      expect(finished.mock.calls.length).toBeGreaterThan(before)
    })
    await stop()
    const last = finished.mock.calls.length
    vi.advanceTimersByTime(10 * INTERVAL)
    expect(finished.mock.calls.length).toBe(last)
  })

  it('C6.3.4 have been written when the watch has stopped: nothing comes into the folder afterwards', async () => {
    const { stop, finished } = await watched()
    const held = Promise.withResolvers<undefined>()
    finished.mockImplementation(() => held.promise)
    await eventually(() => {
      vi.advanceTimersByTime(INTERVAL)
      expect(finished.mock.results.at(-1)?.value).toBe(held.promise)
    })
    let stopped = false
    const stopping = stop().then(() => (stopped = true))
    await settled()
    expect(stopped).toBe(false)
    held.resolve(undefined)
    await stopping
  })
})

describe('C6.3.4 the remembered keys', () => {
  it('C6.3.4 are the newest hundred, oldest first, each once', async () => {
    const store = new MemoryStore(movableClock())
    const kids = Array.from({ length: 100 }, (_, at) => `k${at}`)
    await rememberKeys(kids, store)
    expect(await rememberedKeys(store)).toEqual(kids)
    await rememberKeys(['k5', 'new'], store)
    expect(await rememberedKeys(store)).toEqual([...kids.slice(1), 'new'])
  })

  it('C6.3.4 are written only if a key is new', async () => {
    const store = new MemoryStore(movableClock())
    await rememberKeys(['a', 'b'], store)
    const replace = vi.spyOn(store, 'replace')
    await rememberKeys(['b'], store)
    expect(replace).not.toHaveBeenCalled()
    await rememberKeys(['b', 'c'], store)
    expect(replace).toHaveBeenCalledTimes(1)
  })

  it('C6.3.4 are all kept if several processes remember at once', async () => {
    const store = new MemoryStore(movableClock())
    await Promise.all(['a', 'b', 'c'].map((kid) => rememberKeys([kid], store)))
    expect([...(await rememberedKeys(store))].sort()).toEqual(['a', 'b', 'c'])
    await Promise.all(['d', 'e', 'f'].map((kid) => rememberKeys([kid], store)))
    expect(await rememberedKeys(store)).toHaveLength(6)
  })

  it('C6.3.4 a record of another form counts as none', async () => {
    const store = new MemoryStore(movableClock())
    await store.create('signing_keys', 'own', { value: { kids: 'a' } })
    expect(await compareWithHistory({ kids: ['a'], made: false }, store)).toBe('first')
    expect(await rememberedKeys(store)).toEqual(['a'])
  })
})
