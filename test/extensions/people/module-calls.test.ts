import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import { ModuleCalls } from '../../../src/extensions/people/module-calls.ts'
import type { Runner } from '../../../src/extensions/people/module-thread.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { exchanged, makeModuleDirectory, type WrittenModule } from './made-people.ts'
import { settled } from '../../support/settled.ts'

const DORA = { subject: 'subject-of-dora', username: 'dora' }
const NEVER = (): Promise<never> => new Promise(() => undefined)
const BLOCKED = 'it did not answer for 2000 ms: its code blocks'

async function made(module: Partial<WrittenModule> = {}) {
  const asked: string[] = []
  const parts = await makeModuleDirectory({
    findUserByName: (name: string) => (asked.push(name), name.startsWith('never') ? NEVER() : DORA),
    findUserBySubject: () => DORA,
    verifyPassword: () => true,
    ...module,
  })
  const find = (name: string): Promise<unknown> =>
    parts.directory.findByName(name).catch((fault: unknown) => fault)
  return { ...parts, asked, find }
}

const lateBy = (message: string) => ({
  ...{ code: 'people_unavailable', trouble: 'late', facts: { retryAfter: 1, cause: { message } } },
})

describe('C5.7 T5.16 a module that blocks its thread', () => {
  it('C5.7 gets another one; what it had not begun is asked there, and what it had begun is not', async () => {
    const { find, timers, threads, replaced, asked, clock } = await made()
    const begun = ['never 1', 'never 2'].map(find)
    await exchanged()
    threads[0]!.blocks = true
    const behind = ['behind 1', 'behind 2'].map(find)
    clock.advance(2000)
    // The deadlines of three calls, a ping behind the third, the deadline of the fourth.
    timers.fireAt(3)
    expect(await Promise.all(behind)).toMatchObject([DORA, DORA])
    for (const fault of await Promise.all(begun)) expect(fault).toMatchObject(lateBy(BLOCKED))
    expect(asked).toEqual(['never 1', 'never 2', 'behind 1', 'behind 2'])
    expect([threads.length, replaced]).toEqual([2, [BLOCKED]])
  })

  it('C5.7 is asked no call a third time', async () => {
    const { find, timers, threads, asked, clock } = await made()
    threads[0]!.blocks = true
    const answer = find('behind')
    clock.advance(2000)
    timers.fireAt(-1)
    await settled()
    threads[1]!.blocks = true
    await exchanged()
    clock.advance(2000)
    timers.fireAt(-1)
    expect(await answer).toMatchObject(lateBy(BLOCKED))
    expect([threads.length, asked]).toEqual([2, []])
  })
})

describe('C5.7 a thread that stays', () => {
  it('C5.7 is that of a call which is late while others are answered', async () => {
    const { find, timers, threads, replaced } = await made()
    const late = find('never')
    await exchanged()
    await timers.fire()
    expect(await late).toMatchObject({
      trouble: 'late',
      facts: { detail: expect.stringContaining('2000 ms') },
    })
    await exchanged()
    expect(timers.delays()).toEqual([])
    expect(await find('dora')).toMatchObject(DORA)
    expect([threads.length, replaced]).toEqual([1, []])
  })
})

describe('C5.7 a thread that ends', () => {
  it('C5.7 fails the calls that it had begun; the next call has another one, but not in a tight loop', async () => {
    const { find, threads, replaced, clock } = await made()
    const begun = find('never')
    await exchanged()
    clock.advance(1000)
    threads[0]!.exit(3)
    expect(await begun).toMatchObject(lateBy('it ended with exit code 3'))
    expect(await find('dora')).toMatchObject(DORA)
    threads[1]!.exit(3)
    expect(await find('erin')).toMatchObject({
      ...{ code: 'people_unavailable', facts: { cause: { message: 'its thread ended a moment ago' } } },
    })
    clock.advance(1000)
    expect(await find('erin')).toMatchObject(DORA)
    expect([threads.length, replaced]).toEqual([
      3,
      ['it ended with exit code 3', 'it ended with exit code 3'],
    ])
  })

  it('C5.7 that cannot be made again fails calls with the reason', async () => {
    const module: Record<string, () => unknown> = {
      ...{ findUserByName: () => DORA, findUserBySubject: () => DORA, verifyPassword: () => true },
    }
    const { directory, threads, clock } = await makeModuleDirectory(module as unknown as WrittenModule)
    Reflect.deleteProperty(module, 'verifyPassword')
    clock.advance(1000)
    threads[0]!.exit(1)
    await expect(directory.findByName('dora')).rejects.toMatchObject({
      ...{ code: 'people_unavailable', facts: { cause: { message: 'it has no function `verifyPassword`' } } },
    })
    module['verifyPassword'] = () => true
    clock.advance(1000)
    expect(await directory.findByName('dora')).toMatchObject(DORA)
  })
})

/** Calls in a thread of which the test says everything that it tells. */
function tellingThread() {
  const [worker, port] = [new EventEmitter(), new EventEmitter()]
  const timers = manualAfter()
  const ignore = (): void => undefined
  const runner = {
    worker: Object.assign(worker, { terminate: ignore, unref: ignore }),
    port: Object.assign(port, { postMessage: ignore, close: ignore }),
  } as unknown as Runner
  const calls = ModuleCalls.open(
    { source: { package: 'of the test' }, options: {} },
    {
      ...{ clock: movableClock(), after: timers.after, failed: ignore, replaced: ignore },
      start: () => runner,
    },
  )
  return { calls, worker, timers, tell: (told: unknown) => port.emit('message', told) }
}

describe('C5.7 what a reload and a command need to know', () => {
  it('C11.5.4 the files of a thread that has ended count until another one has some: a reload compares them', async () => {
    const { calls, worker, tell } = tellingThread()
    const files = [['/people.mjs', 'a digest']]
    tell({ files })
    tell({ opened: true })
    const opened = await calls
    worker.emit('exit', 1)
    expect(opened.files).toEqual(files)
  })

  it('C5.7 that it cannot be used is told once its thread has ended, or is known to block', async () => {
    for (const end of ['exits', 'blocks']) {
      const { calls, worker, timers, tell } = tellingThread()
      let told: unknown
      const refused = calls.catch((thrown: unknown) => (told = thrown))
      tell({ opened: false, reason: 'why' })
      await settled()
      expect([end, told, timers.delays()]).toEqual([end, undefined, [30_000, 1000]])
      if (end === 'blocks') timers.fireAt(1)
      else worker.emit('exit', 1)
      expect(await refused).toMatchObject({ message: 'why' })
      worker.emit('exit', 1)
    }
  })
})
