import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { WorkerRequestError } from '../../../src/base/contracts/processes/open-requests.ts'
import { RunningTime } from '../../../src/base/contracts/processes/open-requests.ts'
import { Watchdog } from '../../../src/serve/processes/watchdog.ts'
import { keepNotes } from '../../support/notes.ts'

/** Long enough for anything that is waited for in a few steps. */
async function pass(time: RunningTime, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 250) {
    time.tick()
    await nextTurn()
    await nextTurn()
  }
}

function startWorker(time: RunningTime, pid: number) {
  const exit = Promise.withResolvers<undefined>()
  const worker = {
    pid,
    frozen: false,
    killed: false,
    request: () =>
      new Promise<never>((resolve, reject) => {
        if (!worker.frozen) resolve(undefined as never)
        else time.after(5000, () => reject(new WorkerRequestError('late', 'it did not answer')))
      }),
    kill: () => {
      worker.killed = true
      exit.resolve(undefined)
    },
    onExit: (listener: () => void) => void exit.promise.then(listener),
  }
  return worker
}

function startWatch() {
  const time = new RunningTime()
  const notes = keepNotes()
  const state = { isWhole: true }
  const dog = new Watchdog(time, notes.note, () => state.isWhole)
  const workers = [startWorker(time, 1), startWorker(time, 2)] as const
  for (const worker of workers) dog.watch(worker)
  return { time, notes, state, dog, workers }
}

describe('T5.9 frozen workers', () => {
  it('kills one that does not answer for 5 s, and leaves alone those that do', async () => {
    const { time, workers, dog } = startWatch()
    const [one, two] = workers
    one.frozen = true
    await pass(time, 4000)
    expect(one.killed).toBe(false)
    await pass(time, 3000)
    expect([one.killed, two.killed]).toEqual([true, false])
    expect(dog.isFrozen(two)).toBe(false)
  })

  it('takes one that has closed its channel for what it is: about to end', async () => {
    const { time, workers, notes } = startWatch()
    workers[0].request = () => Promise.reject(new WorkerRequestError('gone', 'the worker process ended'))
    await pass(time, 8000)
    expect([notes.events, workers[0].killed]).toEqual([[], false])
  })

  it('kills one at a time: the next when another serves in the place of the first', async () => {
    const { time, workers, dog, state, notes } = startWatch()
    for (const worker of workers) worker.frozen = true
    state.isWhole = false
    await pass(time, 10_000)
    expect(workers.map(({ killed }) => killed)).toEqual([true, false])
    expect(dog.isFrozen(workers[1])).toBe(true)
    state.isWhole = true
    await pass(time, 2000)
    expect(workers.map(({ killed }) => killed)).toEqual([true, true])
    expect(notes.events).toEqual(['worker_frozen', 'worker_frozen'])
  })

  it('spares one that answers again before its turn has come', async () => {
    const { time, workers, state } = startWatch()
    for (const worker of workers) worker.frozen = true
    state.isWhole = false
    await pass(time, 8000)
    workers[1].frozen = false
    await pass(time, 7000)
    state.isWhole = true
    await pass(time, 5000)
    expect(workers.map(({ killed }) => killed)).toEqual([true, false])
  })
})

describe('running time', () => {
  it('does not count time in which the process did not run: a late tick counts as one', async () => {
    const time = new RunningTime()
    let due = false
    time.after(1000, () => (due = true))
    for (let tick = 0; tick < 3; tick++) time.tick()
    // However late the fourth tick is, what came in meanwhile is read before anybody is found to be late.
    await nextTurn()
    expect(due).toBe(false)
    time.tick()
    expect(due).toBe(false)
    await nextTurn()
    await nextTurn()
    expect(due).toBe(true)
  })
})
