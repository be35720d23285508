import { AsyncLocalStorage } from 'node:async_hooks'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as immediate, setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { withStartBudget, withStoreBudget } from '../../src/base/kernel/store-budget.ts'
import { ANSWER_COMMAND_WITHIN } from '../../src/state/stores/open-store.ts'
import { SqliteStore } from '../../src/state/stores/sqlite/sqlite.ts'
import { StoreError } from '../../src/state/stores/link/store-error.ts'
import { dataFolder } from '../support/data-folder.ts'
import { isLong, sized } from '../support/long.ts'
import { sqliteAt } from '../support/patient-store.ts'
import { shared } from '../support/shared.ts'
import { startStoreProcess } from '../support/store-process.ts'

const newPath = async (): Promise<string> => join(await dataFolder(), 'postern.sqlite')

/** The fault of a verb, or undefined if it was done. */
async function faultOf(verb: Promise<unknown>): Promise<Fault | undefined> {
  try {
    await verb
    return undefined
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Fault)
    return thrown as Fault
  }
}

const expectUnavailable = (fault: Fault | undefined): void => {
  expect(fault).toMatchObject({ code: 'identity_unavailable', status: 503 })
  expect(fault?.facts.retryAfter).toBeGreaterThan(0)
}

const PROCESSES = sized(3, 4)
const KEYS = sized(200, 600)

describe('several processes on one store', () => {
  it(`C6.1.6 ${PROCESSES} processes claim ${KEYS} keys: exactly one is first at each`, async () => {
    const path = await newPath()
    const processes = Array.from({ length: PROCESSES }, () => startStoreProcess('claim', path, `${KEYS}`))
    await Promise.all(processes.map((each) => each.line('ready')))
    for (const each of processes) each.process.stdin?.write('go\n')
    const results = await Promise.all(
      processes.map(
        async (each) =>
          JSON.parse((await each.line('result')).slice('result '.length)) as Record<string, string[]>,
      ),
    )
    const keys = (member: string): string[] => results.flatMap((each) => each[member] ?? [])
    // On a busy machine a call may not be answered in time. It may have been done all the same: then nobody is told.
    const unanswered = new Set(keys('unanswered'))
    for (const told of [keys('created'), keys('first')]) {
      expect(told.length).toBe(new Set(told).size)
      expect(new Set([...told, ...unanswered]).size).toBe(KEYS)
    }
  })

  it('T5.7 a process killed at any moment loses nothing that it was answered', async () => {
    const path = await newPath()
    const store = await sqliteAt(path)
    for (const wait of isLong ? [5, 40, 90, 160] : [5, 60]) {
      const writer = startStoreProcess('write', path)
      await writer.line('consumed')
      await delay(wait)
      writer.process.kill('SIGKILL')
      await writer.ended()
      const keys = new Set((await store.list('key')).map(({ key }) => key))
      const lines = writer.lines.map((line) => line.split(' '))
      // The last line may be cut short, but then it is no known word with a whole key.
      const created = lines.filter(([word]) => word === 'created').map(([, key]) => key ?? '')
      expect(created.slice(0, -1).filter((key) => !keys.has(key))).toEqual([])
      const consumed = lines.filter(([word]) => word === 'consumed').map(([, key]) => key ?? '')
      for (const key of consumed.slice(-20, -1))
        expect(await store.consume('key', key)).toMatchObject({ first: false })
    }
  })
})

describe('T5.5 a store that another process has locked', () => {
  async function locked(freeze: boolean) {
    const path = await newPath()
    const store = await sqliteAt(path, { deadline: 400 })
    await store.create('key', 'before', { value: {} })
    const holder = startStoreProcess('hold', path)
    await holder.line('held')
    if (freeze) holder.process.kill('SIGSTOP')
    return { store, holder }
  }
  /** For those who only find it locked. */
  const frozen = shared(() => locked(true))

  it('frozen: every verb is answered while the lock is held: writes by 503, reads as ever', async () => {
    const { store } = await frozen()
    const writes = await Promise.all(
      Array.from({ length: 40 }, (_, n) => faultOf(store.create('key', `k${n}`, { value: {} }))),
    )
    for (const fault of writes) expectUnavailable(fault)
    expect(await store.find('key', 'before')).toBeDefined()
  })

  it('held for longer than a caller of the service may wait: a command waits for it, and loses nothing', async () => {
    const path = await newPath()
    const plan = { path, synchronous: 'normal', maxSize: undefined, deadline: 400 } as const
    const patient = await SqliteStore.open({ ...plan, answerWithin: ANSWER_COMMAND_WITHIN }, systemClock)
    const serving = await SqliteStore.open(plan, systemClock)
    onTestFinished(async () => {
      await Promise.all([patient.close(), serving.close()])
    })
    const holder = startStoreProcess('hold', path)
    await holder.line('held')
    const written = patient.create('key', 'patient', { value: {} })
    expectUnavailable(await faultOf(serving.create('key', 'serving', { value: {} })))
    holder.process.stdin?.write('release\n')
    expect(await written).toBe(true)
    expect((await serving.list('key')).map(({ key }) => key)).toEqual(['patient'])
  })

  it('held for longer than a configuration allows: a request waits for as long as its own one says', async () => {
    const path = await newPath()
    const patient = await sqliteAt(path, { deadline: 30_000 })
    const usual = await sqliteAt(path, { deadline: 400 })
    const holder = startStoreProcess('hold', path)
    await holder.line('held')
    const asRequest = (store: SqliteStore, key: string): Promise<boolean> =>
      withStoreBudget(() => store.create('key', key, { value: {} }), store.patience)
    const written = asRequest(patient, 'patient')
    expectUnavailable(await faultOf(asRequest(usual, 'usual')))
    holder.process.stdin?.write('release\n')
    expect(await written).toBe(true)
    expect((await patient.list('key')).map(({ key }) => key)).toEqual(['patient'])
  })

  it('held while the service starts: it waits, and starts', async () => {
    const path = await newPath()
    const store = await sqliteAt(path, { deadline: 400 })
    const holder = startStoreProcess('hold', path)
    await holder.line('held')
    const written = withStartBudget(() => store.create('key', 'start', { value: {} }))
    expectUnavailable(await faultOf(store.create('key', 'usual', { value: {} })))
    holder.process.stdin?.write('release\n')
    expect(await written).toBe(true)
  })

  it('frozen: the event loop goes on', async () => {
    const { store } = await frozen()
    const settled = new AbortController()
    const writing = faultOf(store.create('key', 'k', { value: {} }))
    void writing.then(() => settled.abort())
    let turns = 0
    for (; !settled.signal.aborted && turns <= 10; turns += 1) await immediate()
    expectUnavailable(await writing)
    expect(turns).toBeGreaterThan(10)
  })

  it('frozen while verbs keep coming: all are answered, and after the release all is as before', async () => {
    const { store, holder } = await locked(true)
    const running: Promise<Fault | undefined>[] = []
    for (let n = 0; n < 50; n += 1) {
      running.push(faultOf(store.consume('key', 'before')), faultOf(store.find('key', 'before')))
      await delay(10)
    }
    await Promise.all(running)
    // Answered only when the thread waits for no lock any more: then what was refused is not on its way either.
    while (await faultOf(store.find('key', 'before')));
    holder.process.kill('SIGCONT')
    holder.process.stdin?.write('release\n')
    await holder.line('released')
    while (await faultOf(store.create('key', 'after', { value: {} }))) await delay(5)
    // Nothing that was answered 503 was done after all.
    expect(await store.consume('key', 'before')).toMatchObject({ first: true })
  })

  it('frozen: one request waits for all that it asks no longer than for one question', async () => {
    const { store } = await frozen()
    const create = async (): Promise<string> => {
      const fault = await faultOf(store.create('key', 'k', { value: {} }))
      expectUnavailable(fault)
      return fault?.facts.detail ?? ''
    }
    const REFUSED = 'store: what this request asked before took too long'
    // It ends only if the time of the request does.
    await withStoreBudget(async () => {
      while ((await create()) !== REFUSED);
    })
    // What belongs to no request has its own time for each.
    for (let n = 0; n < 4; n += 1) expect(await create()).not.toBe(REFUSED)
  })

  it('frozen: what a request has left behind after its answer has time as everybody', async () => {
    const { store, holder } = await locked(true)
    const left = Promise.withResolvers<() => Promise<boolean>>()
    await withStoreBudget(async () => {
      const later = AsyncLocalStorage.snapshot()
      left.resolve(() => later(() => store.create('key', 'later', { value: {} })))
      await faultOf(store.create('key', 'a', { value: {} }))
      await faultOf(store.create('key', 'b', { value: {} }))
    })
    holder.process.kill('SIGCONT')
    holder.process.stdin?.write('release\n')
    await holder.line('released')
    expect(await (await left.promise)()).toBe(true)
  })

  it('by a process that is killed: free at once', async () => {
    const { store, holder } = await locked(false)
    holder.process.kill('SIGKILL')
    await holder.ended()
    expect(await store.create('key', 'after', { value: {} })).toBe(true)
  })
})

describe('T5.5 a store that is full', () => {
  it('answers 503 to writes, still reads, and works again when room is made', async () => {
    const path = await newPath()
    const store = await sqliteAt(path, { maxSize: 256 * 1024 })
    const value = { text: 'x'.repeat(8000) }
    let full: Fault | undefined
    let made = 0
    for (; full === undefined && made < 100; made += 1)
      full = await faultOf(store.create('key', `${made}`, { value, indexes: { client: 'c' } }))
    expectUnavailable(full)
    expect(full?.facts.detail).toContain('full')
    expect(await store.find('key', '0')).toBeDefined()
    expect(await store.removeBy('key', { client: 'c' })).toBe(made - 1)
    expect(await store.create('key', 'after', { value })).toBe(true)
  })

  it('C11.1 is told once two writes were refused alike, and no longer when one is taken', async () => {
    const store = await sqliteAt(await newPath(), { maxSize: 256 * 1024 })
    const value = { text: 'x'.repeat(8000) }
    const entry = { value, indexes: { client: 'c' } }
    let made = 0
    while ((await faultOf(store.create('key', `${(made += 1)}`, entry))) === undefined && made < 100);
    expect(store.refusesWrites).toBeUndefined()
    expectUnavailable(await faultOf(store.create('key', 'second', entry)))
    expect(store.refusesWrites).toBe('the disk is full, or the store has reached its maxSize (SQLite 13)')
    await store.removeBy('key', { client: 'c' })
    expect(await store.create('key', 'after', { value })).toBe(true)
    expect(store.refusesWrites).toBeUndefined()
  })
})

describe('T7 a store that is not fit to be used is refused, and left as it is', () => {
  const refusal = async (path: string): Promise<string> => {
    const thrown: unknown = await SqliteStore.open(
      { path, synchronous: 'normal', maxSize: undefined },
      systemClock,
    ).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(StoreError)
    return (thrown as StoreError).message
  }

  it('with a newer schema', async () => {
    const path = await newPath()
    await (await sqliteAt(path)).close()
    const db = new DatabaseSync(path)
    db.exec('PRAGMA user_version = 999')
    db.close()
    expect(await refusal(path)).toMatch(
      /has schema 999, but this Postern knows schemas up to \d+: a newer one/,
    )
  })

  it('if it is another program’s database', async () => {
    const path = await newPath()
    const db = new DatabaseSync(path)
    db.exec('CREATE TABLE theirs (a)')
    db.close()
    expect(await refusal(path)).toMatch(/not a store of Postern/)
  })

  it.each([
    ['no database', 'not a database, but a text of some length\n'.repeat(200)],
    ['a database cut short', 'SQLite format 3\0'],
  ])('if it is %s', async (_, text) => {
    const path = await newPath()
    writeFileSync(path, text)
    expect(await refusal(path)).toMatch(/cannot be opened: .*(no database|damaged).*restore a backup/)
  })

  it('if its path is a folder', async () => {
    const path = await newPath()
    mkdirSync(path)
    expect(await refusal(path)).toMatch(/cannot be opened/)
  })
})

describe('the files of a store', () => {
  it('are for their owner only, also when they were not', async () => {
    const folder = join(await dataFolder(), 'data')
    const path = join(folder, 'postern.sqlite')
    const modeOf = async (file: string): Promise<number> => (await stat(file)).mode & 0o777
    const store = await sqliteAt(path)
    await store.create('key', 'k', { value: {} })
    expect(await modeOf(folder)).toBe(0o700)
    for (const file of [path, `${path}-wal`, `${path}-shm`]) expect(await modeOf(file)).toBe(0o600)
    await store.close()
    chmodSync(path, 0o644)
    const again = await sqliteAt(path)
    await again.create('key', 'l', { value: {} })
    for (const file of [path, `${path}-wal`]) expect(await modeOf(file)).toBe(0o600)
  })
})
