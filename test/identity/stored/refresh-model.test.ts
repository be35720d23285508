import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/base/contracts/records/store.ts'
import { FAMILY } from '../../../src/identity/stored/families.ts'
import { openTestIdentity, requestToken, type TestIdentity } from '../../support/identity-under-test.ts'

// What C6.1.7 says of a family, against two processes that share a store, which may lose its last writes.

const GRACE = 30_000

/** What may happen: a token is used at a process, time passes, or the store is again as it was some writes ago. */
type Event =
  | { readonly what: 'use'; readonly process: 0 | 1; readonly back: number }
  | { readonly what: 'wait'; readonly ms: number }
  | { readonly what: 'lose'; readonly writes: number }

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      what: fc.constant('use' as const),
      process: fc.constantFrom(0 as const, 1 as const),
      back: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('wait' as const), ms: fc.constantFrom(1000, GRACE) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ what: fc.constant('lose' as const), writes: fc.integer({ min: 1, max: 3 }) }),
  },
)

/** A family as C6.1.7 describes it. */
class Model {
  generation = 1
  rotatedAt = -Infinity
  ended = false
  now = 0

  /** Whether the token of this number is good. */
  use(number: number): boolean {
    if (this.ended) return false
    if (number >= this.generation) {
      this.generation = number + 1
      this.rotatedAt = this.now
      return true
    }
    this.ended = !(number === this.generation - 1 && this.now - this.rotatedAt < GRACE)
    return !this.ended
  }
}

const refresh = (service: TestIdentity, token: string) =>
  requestToken(service, {
    ...{ grant_type: 'refresh_token', refresh_token: token },
    ...{ scope: undefined, username: undefined, password: undefined },
  })

/** Puts a record back as it was, with its version. */
async function putBack({ store }: TestIdentity, { key, value, version, expiresAt }: Entry): Promise<void> {
  await store.remove(FAMILY, key)
  await store.create(FAMILY, key, { value, ...(expiresAt !== undefined && { expiresAt }) })
  for (let at = 1; at < version; at += 1) await store.replace(FAMILY, key, at, value)
}

async function run(events: readonly Event[]): Promise<void> {
  const one = openTestIdentity()
  const processes = [one, openTestIdentity({ store: one.store })] as const
  const model = new Model()
  const first = await requestToken(one, { scope: 'openid offline_access fund.read target:b/ACME' })
  /** Token number n is at n - 1. */
  const tokens: string[] = [first.json.refresh_token]
  const id = tokens[0]?.split('.')[2] ?? ''
  const history: { entry: Entry | undefined; generation: number; rotatedAt: number }[] = []
  const note = async (): Promise<void> => {
    const { generation, rotatedAt } = model
    history.push({ entry: await one.store.find(FAMILY, id), generation, rotatedAt })
  }
  await note()
  for (const happening of events) {
    if (happening.what === 'wait') {
      model.now += happening.ms
      for (const process of processes) process.clock.at += happening.ms
    } else if (happening.what === 'lose') {
      const before = history[Math.max(0, history.length - 1 - happening.writes)]
      if (model.ended || before?.entry === undefined) continue
      await putBack(one, before.entry)
      Object.assign(model, { generation: before.generation, rotatedAt: before.rotatedAt })
      await note()
    } else {
      const number = Math.max(1, tokens.length - happening.back)
      const { json, status } = await refresh(processes[happening.process], tokens[number - 1] ?? '')
      expect([status, number]).toEqual([model.use(number) ? 200 : 400, number])
      if (status !== 200) continue
      expect(json.refresh_token).toBe(tokens[number] ?? json.refresh_token)
      tokens[number] = json.refresh_token
      await note()
    }
  }
}

describe('C6.1.7 a family of refresh tokens', () => {
  it('C6.1.7 is as described, whatever two processes, time and a store that loses writes do to it', async () => {
    await fc.assert(fc.asyncProperty(fc.array(event, { maxLength: 25 }), run), { numRuns: 150 })
  })

  it('C6.1.7 what a process remembers of lost writes does not fit a later record', async () => {
    const use = (process: 0 | 1, back = 0): Event => ({ what: 'use', process, back })
    // Tokens 1 to 4 are used at the first process, the last two uses are lost, and the next ones come to the other process.
    const lost: Event = { what: 'lose', writes: 2 }
    await run([use(0), use(0), use(0), use(0), lost, use(1), use(1), use(0, 2)])
  })
})
