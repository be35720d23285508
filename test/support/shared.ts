/** What several tests share: opened at its first use, as each test expects to find it, and closed behind the last of them. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { afterAll, beforeEach, onTestFinished } from 'vitest'

/** Of what is opened for several tests. */
interface Sharing {
  readonly closed: AsyncDisposableStack
  /** Run before each test. */
  readonly anew: (() => void)[]
}

const sharing = new AsyncLocalStorage<Sharing>()

/** Closes what a test has opened when that test ends; what `shared` opens, with the tests that share it. */
export function atEnd(close: () => unknown): void {
  const stack = sharing.getStore()?.closed
  if (stack === undefined)
    onTestFinished(async () => {
      await close()
    })
  else
    stack.defer(async () => {
      await close()
    })
}

/** For what records or is told something: makes it as new before each test, if tests share it. */
export function anewForEachTest(renew: () => void): void {
  sharing.getStore()?.anew.push(renew)
}

/** Opens for all tests, or, by `own`, once more, for the test that calls it. */
export interface Shared<T, A extends readonly unknown[]> {
  (...given: A): Promise<T>
  /** For a test that leaves it otherwise than it was: that moves the clock, revokes, reloads, locks, breaks connections. */
  own(...given: A): Promise<T>
}

/**
 * Called in a file or at the top of a `describe`, whose tests share what `open` opens: one for all calls with equal
 * arguments, which are plain data. Most of a test's processor time is else the start of its service. When a test begins,
 * upstreams have forgotten their requests and answer as at first, the log has no lines, and no record is found of before.
 */
export function shared<T, A extends readonly unknown[]>(open: (...given: A) => Promise<T>): Shared<T, A> {
  const opened = new Map<string, Promise<T>>()
  const scope: Sharing = { closed: new AsyncDisposableStack(), anew: [] }
  beforeEach(() => {
    for (const renew of scope.anew) renew()
  })
  afterAll(() => scope.closed.disposeAsync())
  const once = (...given: A): Promise<T> => {
    const key = JSON.stringify(given, plainly)
    const found = opened.get(key) ?? sharing.run(scope, () => open(...given))
    opened.set(key, found)
    return found
  }
  return Object.assign(once, { own: open })
}

function plainly(_: string, value: unknown): unknown {
  if (typeof value === 'function')
    throw new TypeError('two functions cannot be compared: give data, or take a service of your own')
  return value
}
