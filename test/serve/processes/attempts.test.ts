import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AttemptStanding, GuessingKey } from '../../../src/base/contracts/people/lockouts.ts'
import { LocalLockouts } from '../../../src/identity/guessing/lockouts.ts'
import { AttemptCoordinator, RemoteAttempts } from '../../../src/serve/processes/shared-attempts.ts'
import { movableClock } from '../../support/movable-clock.ts'

const RULES = {
  attempts: { free: 1000, delay: 1000, longest: 1000 },
  networks: { free: 1000, delay: 1000, longest: 1000 },
  accounts: { free: 4, delay: 1000, longest: 30_000, waiting: 4 },
  forget: 900_000,
  waiting: 32,
}
const STRANGER: AttemptStanding = { nameExists: true, familiar: false }
const from = (network: string): GuessingKey => ({ user: 'alice', client: '', network })

/** Two workers over the count of one supervisor, by copies of their messages. */
function open() {
  const clock = movableClock()
  const delays: number[] = []
  const lockouts = new LocalLockouts(
    RULES,
    clock,
    (ms) => (delays.push(ms), clock.advance(ms), Promise.resolve()),
  )
  const worker = (): RemoteAttempts => {
    const remote: RemoteAttempts = new RemoteAttempts((notice) => {
      if (notice.type === 'enter' || notice.type === 'leave') desk.receive(structuredClone(notice))
    })
    const desk = new AttemptCoordinator(lockouts, (told) => remote.receive(structuredClone(told)))
    return remote
  }
  return { delays, workers: [worker(), worker()] as const, lockouts }
}

async function fail(worker: RemoteAttempts, network: string, standing = STRANGER): Promise<void> {
  const turn = await worker.enter(from(network), standing)
  await turn.end(false)
}

describe('C6.3.5 attempts in several processes', () => {
  it('T3.8 are counted once for all, by account too; where the user is known from stays untouched', async () => {
    const { delays, workers } = open()
    for (let at = 0; at < 6; at++) await fail(workers[at % 2]!, `192.0.2.${at}`)
    expect(delays).toEqual([1000, 2000])
    await fail(workers[0], '198.51.100.1', { nameExists: true, familiar: true })
    expect(delays).toHaveLength(2)
  })

  it('T5.9 a worker whose supervisor is gone answers a right password, and no wrong one, which nobody counts', async () => {
    const [worker] = open().workers
    const unavailable = { code: 'identity_unavailable' }
    const right = await worker.enter(from('192.0.2.1'), STRANGER)
    const wrong = await worker.enter(from('192.0.2.2'), STRANGER)
    const told = await worker.enter(from('192.0.2.3'), STRANGER)
    const behind = worker.enter(from('192.0.2.1'), STRANGER)
    const leaving = told.end(false)
    worker.end()
    await expect(behind).rejects.toMatchObject(unavailable)
    expect(await right.end(true)).toBe(0)
    await expect(wrong.end(false)).rejects.toMatchObject(unavailable)
    await expect(leaving).rejects.toMatchObject(unavailable)
    await expect(worker.enter(from('192.0.2.1'), STRANGER)).rejects.toMatchObject(unavailable)
  })

  it('T5.9 a turn that comes when nobody waits for it any more is given back', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const [first, second] = open().workers
    const turn = await first.enter(from('192.0.2.1'), STRANGER)
    const late = expect(second.enter(from('192.0.2.1'), STRANGER)).rejects.toMatchObject({
      code: 'identity_unavailable',
    })
    await vi.advanceTimersByTimeAsync(180_000)
    await late
    await turn.end(true)
    await fail(first, '192.0.2.1')
  })
})
