import { describe, expect, it } from 'vitest'
import { TokenCredentials } from '../../../src/gateway/backends/forward/auth/token-credentials.ts'
import { type GrantedToken, NoToken } from '../../../src/gateway/backends/forward/auth/token-endpoint.ts'
import { movableClock } from '../../support/movable-clock.ts'

const SECOND = 1000

/** Credentials whose endpoint answers when the test says so. */
function credentials() {
  const clock = movableClock()
  const asked: PromiseWithResolvers<GrantedToken>[] = []
  const told: (string | undefined)[] = []
  const held = new TokenCredentials({
    ask: () => {
      const waiting = Promise.withResolvers<GrantedToken>()
      asked.push(waiting)
      return waiting.promise
    },
    clock,
    changed: (failure) => void told.push(failure),
  })
  const settle = async (act: (last: PromiseWithResolvers<GrantedToken>) => void): Promise<void> => {
    act(asked.at(-1)!)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return {
    ...{ clock, asked, told, held },
    /** @param life seconds */
    grant: (accessToken: string, life?: number) =>
      settle(({ resolve }) => resolve({ accessToken, life: life === undefined ? undefined : life * SECOND })),
    fail: (reason: string) => settle(({ reject }) => reject(new NoToken(reason))),
  }
}

const lineOf = (token: string): string => `authorization: Bearer ${token}\r\n`

describe('the token of a backend', () => {
  it.each([
    ['not told', undefined, 60, 30],
    ['5 minutes', 300, 300, 30],
    ['a minute', 60, 60, 30],
    ['10 s', 10, 10, 5],
    ['1 s', 1, 1, 0.5],
    ['3,000 years', 1e11, 86_400, 30],
  ])(
    'C8.7 whose life is %s is renewed ahead of its end, and used to its end',
    async (_what, life, lasts, ahead) => {
      const { clock, asked, held, grant } = credentials()
      const first = held.line()
      await grant('a', life)
      await expect(first).resolves.toBe(lineOf('a'))
      clock.advance((lasts - ahead) * SECOND - 1)
      expect(held.line()).toBe(lineOf('a'))
      expect(asked).toHaveLength(1)
      clock.advance(1)
      expect(held.line()).toBe(lineOf('a'))
      expect(held.line()).toBe(lineOf('a'))
      expect(asked).toHaveLength(2)
      clock.advance(ahead * SECOND - 1)
      expect(held.line()).toBe(lineOf('a'))
      clock.advance(1)
      const next = held.line()
      expect(next).toBeInstanceOf(Promise)
      await grant('b')
      await expect(next).resolves.toBe(lineOf('b'))
      expect(asked).toHaveLength(2)
    },
  )

  it('C8.7 lives from the request for it on, not from the answer', async () => {
    const { clock, asked, held, grant } = credentials()
    void held.line()
    clock.advance(4 * SECOND)
    await grant('a', 100)
    clock.advance(66 * SECOND)
    expect(held.line()).toBe(lineOf('a'))
    expect(asked).toHaveLength(2)
    clock.advance(30 * SECOND)
    expect(held.line()).toBeInstanceOf(Promise)
  })

  it.each([
    ['is over', 3, 4],
    ['is less than a second', 0.9, 0],
    ['is nothing', 0, 0],
    ['is less than nothing', -1, 0],
  ])('C8.7 whose life %s when it comes counts as none', async (_what, life, seconds) => {
    const { clock, told, held, grant, asked } = credentials()
    const line = held.line()
    const outcome = expect(line).rejects.toMatchObject({ code: 'upstream_token_unavailable' })
    clock.advance(seconds * SECOND)
    await grant('a', life)
    await outcome
    expect(told).toEqual(['its token had expired when it came'])
    await expect(held.line()).rejects.toMatchObject({ facts: { retryAfter: 1 } })
    expect(asked).toHaveLength(1)
  })

  it('C8.7 that cannot be got is told once per reason, and once that it can be got again', async () => {
    const { clock, told, held, grant, fail } = credentials()
    for (const reason of ['it answered 500', 'it answered 500', 'it answered 503']) {
      const outcome = expect(held.line()).rejects.toMatchObject({ code: 'upstream_token_unavailable' })
      await fail(reason)
      await outcome
      clock.advance(30 * SECOND)
    }
    void held.line()
    await grant('a')
    expect(told).toEqual(['it answered 500', 'it answered 503', undefined])
  })

  it('C8.7 whose renewal fails is used on, and asked for again after the wait', async () => {
    const { clock, asked, held, grant, fail } = credentials()
    void held.line()
    await grant('a', 300)
    clock.advance(270 * SECOND)
    for (const [index, wait] of [1, 2, 4, 8].entries()) {
      expect(held.line()).toBe(lineOf('a'))
      await fail('it answered 500')
      clock.advance(wait * SECOND - 1)
      expect(held.line()).toBe(lineOf('a'))
      expect(asked).toHaveLength(index + 2)
      clock.advance(1)
    }
    expect(held.line()).toBe(lineOf('a'))
    await grant('b', 300)
    expect(held.line()).toBe(lineOf('b'))
  })

  it('C8.7 that was refused late, when there is another already, costs nothing', async () => {
    const { asked, held, grant } = credentials()
    void held.line()
    await grant('a')
    const a = held.line() as Awaited<ReturnType<typeof held.line>>
    expect(held.refused(a)).toBe(true)
    const next = held.line()
    expect(held.refused(a)).toBe(true)
    await grant('b')
    await next
    expect(held.refused(a)).toBe(true)
    expect(held.line()).toBe(lineOf('b'))
    expect(asked).toHaveLength(2)
  })

  it('C8.7 that is the same one again after it was refused stays for the wait', async () => {
    const { clock, asked, held, grant } = credentials()
    void held.line()
    await grant('a')
    const line = held.line() as Awaited<ReturnType<typeof held.line>>
    expect(held.refused(line)).toBe(true)
    void held.line()
    await grant('a')
    expect(held.refused(line)).toBe(false)
    clock.advance(SECOND - 1)
    expect(held.refused(line)).toBe(false)
    expect(held.line()).toBe(line)
    clock.advance(1)
    expect(held.refused(line)).toBe(true)
    expect(asked).toHaveLength(2)
  })

  it('C8.7 that is refused a minute after the last refusal is replaced at once', async () => {
    const { clock, held, grant } = credentials()
    for (let round = 0; round < 10; round++) {
      void held.line()
      await grant(`token-${round}`, 3600)
      const line = held.line() as Awaited<ReturnType<typeof held.line>>
      expect(held.refused(line)).toBe(true)
      clock.advance(60 * SECOND)
    }
  })

  it('C8.7 of a backend that was closed is asked for no more, and tells nothing', async () => {
    const { asked, told, held, fail } = credentials()
    const outcome = expect(held.line()).rejects.toMatchObject({ code: 'upstream_token_unavailable' })
    held.close()
    await fail('the backend was closed')
    await outcome
    await expect(held.line()).rejects.toMatchObject({ code: 'upstream_token_unavailable' })
    expect(asked).toHaveLength(1)
    expect(told).toEqual([])
  })
})
