import { vi } from 'vitest'

/** Milliseconds. Generous, since a machine may be busy with others: whoever waits takes no processor time. */
const TIMEOUT = 100_000
/** Milliseconds between two looks. */
const INTERVAL = 10

/** Resolves with what `check` gives as soon as it does not throw; rejects with what it threw last, after 100 s. */
export const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: TIMEOUT, interval: INTERVAL })
