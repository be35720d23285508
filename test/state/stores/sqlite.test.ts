import { readFileSync, watch, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { StoredValue } from '../../../src/base/contracts/records/store.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { SqliteStore } from '../../../src/state/stores/sqlite/sqlite.ts'
import { markerOf } from '../../../src/state/stores/sqlite/store-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { settled } from '../../support/settled.ts'

async function openedAt() {
  // A folder's name may have a quote, which ends a text in SQL.
  const path = join(await dataFolder(), "an operator's", 'postern.sqlite')
  const store = await SqliteStore.open({ path, synchronous: 'normal', maxSize: undefined }, systemClock)
  onTestFinished(() => store.close())
  return { path, store }
}

const opened = async (): Promise<SqliteStore> => (await openedAt()).store

/** A reading is held up only when the test says so. */
function timersByHand(): { readonly holdUp: () => void } {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  return { holdUp: () => void vi.advanceTimersByTime(100) }
}

/** A store whose thread hears nothing until `goOn`, as if it waited for a disk. `threads`: those that were sent something. */
async function stuck() {
  const path = join(await dataFolder(), 'postern.sqlite')
  const plan = { path, synchronous: 'normal', maxSize: undefined, marked: true } as const
  const store = await SqliteStore.open(plan, systemClock)
  const threads = new Set<Worker>()
  const withheld: unknown[] = []
  let isStuck = true
  const post = vi.spyOn(Worker.prototype, 'postMessage')
  post.mockImplementation(function (this: Worker, message: unknown) {
    threads.add(this)
    const [first] = threads
    if (isStuck && this === first) withheld.push(message)
    else originalPost.call(this, message)
  })
  onTestFinished(async () => {
    goOn()
    await store.close()
    post.mockRestore()
  })
  const goOn = (): void => {
    isStuck = false
    const [first] = threads
    for (const message of withheld.splice(0)) originalPost.call(first, message)
  }
  return { path, store, threads, goOn }
}

// Called with a worker as `this` only.
// eslint-disable-next-line @typescript-eslint/unbound-method
const originalPost = Worker.prototype.postMessage

describe('the SQLite store', () => {
  it('T5.5 bounds how many wait for it: the rest is 503 at once', async () => {
    const store = await opened()
    const asked = await Promise.allSettled(Array.from({ length: 1200 }, (_, n) => store.find('code', `${n}`)))
    const refused = asked.filter(({ status }) => status === 'rejected')
    expect(refused.length).toBe(200)
    expect(refused[0]).toMatchObject({ reason: { code: 'identity_unavailable', facts: { retryAfter: 1 } } })
    expect(await store.find('code', 'k')).toBeUndefined()
  })

  it('does what is asked at once in few transactions, and each for itself where one fails', async () => {
    timersByHand()
    const store = await opened()
    const post = vi.spyOn(Worker.prototype, 'postMessage')
    onTestFinished(() => post.mockRestore())
    const keys = Array.from({ length: 300 }, (_, n) => `k${n}`)
    const created = Promise.all(keys.map((key) => store.create('code', key, { value: { key } })))
    const found = Promise.all(keys.map((key) => store.find('code', key)))
    const twice = store.create('code', 'k0', { value: { key: 'another' } })
    const broken = store.create('code', 'bad', { value: undefined as unknown as StoredValue })
    await expect(broken).rejects.toThrow(/constraint/)
    expect(await created).toEqual(keys.map(() => true))
    expect(await found).toHaveLength(keys.length)
    expect(await twice).toBe(false)
    expect((await store.find('code', 'k0'))?.value).toEqual({ key: 'k0' })
    expect(await store.find('code', 'bad')).toBeUndefined()
    // One message for all of the first turn, and one for each later question.
    expect(post).toHaveBeenCalledTimes(3)
    expect(new Set(post.mock.contexts).size).toBe(1)
  })

  it('T5.5 takes an answer that came in time, also if its own process was held up meanwhile', async () => {
    const store = await opened()
    const found = store.create('code', 'k', { value: {} })
    // The message goes to the thread.
    await new Promise((resolve) => setImmediate(resolve))
    const heldUp = new Int32Array(new SharedArrayBuffer(4))
    Atomics.wait(heldUp, 0, 0, 2000)
    expect(await found).toBe(true)
  })

  it('answers what was asked before it was closed, and 503 after', async () => {
    const store = await opened()
    const before = store.create('code', 'k', { value: {} })
    await store.close()
    expect(await before).toBe(true)
    await expect(store.find('code', 'k')).rejects.toMatchObject({ code: 'identity_unavailable' })
  })

  it('T5.5 outlives its thread: what waited is 503, and another thread takes over', async () => {
    const store = await opened()
    await store.create('code', 'k', { value: {} })
    const post = vi.spyOn(Worker.prototype, 'postMessage').mockImplementation(() => undefined)
    onTestFinished(() => post.mockRestore())
    const waiting = store.create('code', 'l', { value: {} })
    await settled()
    const [thread] = post.mock.contexts as Worker[]
    post.mockRestore()
    void thread?.terminate()
    await expect(waiting).rejects.toMatchObject({ code: 'identity_unavailable' })
    const found = await vi.waitUntil(() => store.find('code', 'k').catch(() => undefined), {
      timeout: 30_000,
    })
    expect(found.key).toBe('k')
  })

  it('C11.5.8: it is rewritten in its own folder, where no other one can be written', async () => {
    const { path, store } = await openedAt()
    // SQLite keeps a small temporary file in memory.
    const value = { text: 'x'.repeat(10_000) }
    await Promise.all(Array.from({ length: 800 }, (_, n) => store.create('code', `${n}`, { value })))
    const names = new Set<string | null>()
    const watcher = watch(dirname(path), (_event, name) => void names.add(name))
    onTestFinished(() => watcher.close())
    expect(await store.forget()).toBe(true)
    await eventually(() => expect([...names].join(' ')).toContain('etilqs_'))
    expect((await store.find('code', '799'))?.value).toEqual(value)
  })

  it('gives each process that opens a new store at the same time the same schema', async () => {
    const path = join(await dataFolder(), 'postern.sqlite')
    const stores = await Promise.all(
      Array.from({ length: 4 }, () =>
        SqliteStore.open({ path, synchronous: 'normal', maxSize: undefined }, systemClock),
      ),
    )
    onTestFinished(async () => {
      await Promise.all(stores.map((store) => store.close()))
    })
    for (const [n, store] of stores.entries())
      expect(await store.create('code', 'k', { value: {} })).toBe(n === 0)
  })
})

describe('C11.7.2 a SQLite store whose thread waits for a write', () => {
  it('reads by another thread, which sees all that was written, and goes on with it', async () => {
    const { holdUp } = timersByHand()
    const { store, threads, goOn } = await stuck()
    const written = store.create('code', 'k', { value: {} })
    const readings = Promise.all([store.find('code', 'k'), store.changes(undefined, 1)])
    await settled()
    expect(threads.size).toBe(1)
    holdUp()
    expect(await readings).toEqual([undefined, expect.objectContaining({ changes: [] })])
    expect(threads.size).toBe(2)
    goOn()
    expect(await written).toBe(true)
    // What the first thread says of these readings now is heard by nobody.
    expect(await store.find('code', 'k')).toMatchObject({ key: 'k' })
    expect(await store.list('code')).toHaveLength(1)
    expect(threads.size).toBe(2)
  })

  it('waits on if no other thread can be started, and tries again at the next reading', async () => {
    const { holdUp } = timersByHand()
    const { path, store, threads, goOn } = await stuck()
    const ended = vi.spyOn(Worker.prototype, 'emit')
    onTestFinished(() => ended.mockRestore())
    const marker = readFileSync(markerOf(path), 'utf8')
    writeFileSync(markerOf(path), '{"file":"0:0"}')
    const first = store.find('code', 'k')
    await settled()
    holdUp()
    await vi.waitUntil(() => ended.mock.calls.some(([event]) => event === 'exit'), { timeout: 30_000 })
    writeFileSync(markerOf(path), marker)
    const second = store.find('code', 'k')
    await settled()
    expect(threads.size).toBe(1)
    holdUp()
    expect(await Promise.all([first, second])).toEqual([undefined, undefined])
    expect(store.trouble).toBeUndefined()
    goOn()
    expect(await store.create('code', 'k', { value: {} })).toBe(true)
  })

  it('answers all that was asked when it is closed while the other thread starts, and leaves no thread', async () => {
    const { holdUp } = timersByHand()
    const { store, threads, goOn } = await stuck()
    const asked = Promise.all([store.create('code', 'k', { value: {} }), store.find('code', 'k')])
    await settled()
    holdUp()
    await settled()
    const closed = store.close()
    goOn()
    await closed
    expect(await asked).toEqual([true, undefined])
    expect([...threads].map(({ threadId }) => threadId)).toEqual([-1, -1])
  })
})
