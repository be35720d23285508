/** The wait for the lock of a trail's folder (C12.4): by a clock that the test moves. */
import { hostname } from 'node:os'
import { expect, it, onTestFinished } from 'vitest'
import { holderOf, placeOfHolder, waitForLock } from '../../../src/extensions/audit/trail-lock.ts'
import { type TrailLock, tryLock } from '../../../src/operate/trail/lock.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { movableClock } from '../../support/movable-clock.ts'

const SECOND = 1000
const MINUTE = 60 * SECOND

const taken = (folder: string): TrailLock => {
  const lock = tryLock(folder)
  if (lock === undefined) throw new Error(`${folder} is in use`)
  onTestFinished(() => lock.release())
  return lock
}

/** Lets time pass in steps, and what each of them starts settle. */
async function pass(clock: ReturnType<typeof movableClock>, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += SECOND) {
    clock.advance(SECOND)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** Waits for a lock that another one has. */
async function waiting() {
  const folder = await dataFolder()
  const held = taken(folder)
  const clock = movableClock()
  const waits = waitForLock(folder, { clock, after: clock.after })
  const settled = Promise.allSettled([waits])
  return { folder, held, clock, waits, settled }
}

it('C12.4 the lock that nobody has is taken at once', async () => {
  const folder = await dataFolder()
  const clock = movableClock()
  const lock = await waitForLock(folder, { clock, after: clock.after })
  onTestFinished(() => lock.release())
  expect(tryLock(folder)).toBeUndefined()
  expect(clock.timers()).toBe(0)
})

it('C12.4 the lock of another one is waited for, and taken when that ends', async () => {
  const { folder, held, clock, waits } = await waiting()
  await pass(clock, MINUTE - SECOND)
  held.release()
  await pass(clock, SECOND)
  const lock = await waits
  onTestFinished(() => lock.release())
  expect(tryLock(folder)).toBeUndefined()
})

it('C12.4 the lock of one that does not end is given up after a minute, and who has it is named', async () => {
  const { folder, held, clock, settled } = await waiting()
  held.announce({ adminUrl: 'http://127.0.0.1:9' })
  await pass(clock, MINUTE + SECOND)
  const [{ status, reason }] = (await settled) as [PromiseRejectedResult]
  expect(status).toBe('rejected')
  expect(reason).toMatchObject({
    name: 'AuditFolderError',
    message: expect.stringMatching(
      /^the service on \S+ \(\S+, http:\/\/127\.0\.0\.1:9\) writes the audit trail, and has not ended within 60 s: stop it, or give this service a folder of its own \(`audit\.folder`\)\.$/,
    ),
  })
  // An attempt leaves nothing behind.
  held.release()
  taken(folder)
})

it('C12.4 one that has not said who it is is another process', async () => {
  const folder = await dataFolder()
  const held = taken(folder)
  expect([holderOf(folder), placeOfHolder(folder)]).toEqual(['another process', folder])
  held.announce({ adminUrl: 'http://127.0.0.1:9' })
  // Anybody may ask for the readiness, which names it: its address is only in the log.
  expect(holderOf(folder)).toBe(`the service on ${hostname()}`)
  expect(placeOfHolder(folder)).toBe(`${folder}, http://127.0.0.1:9`)
})
