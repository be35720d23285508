import type { Recorder } from '../contracts/recorder.ts'
import type { Store } from '../contracts/store.ts'
import { meaningOf, recallKeys, rememberKeys } from './key-history.ts'
import { reasonOf } from './private-folder.ts'
import type { ServiceKeys } from './service-keys.ts'

export interface KeyWatchParts {
  readonly keys: ServiceKeys
  readonly store: Store
  readonly recorder: Pick<Recorder, 'note'>
  /** Called when another secret for refresh tokens stands in the folder, and is in force here. */
  readonly secretReplaced: () => Promise<void>
}

/** Milliseconds between two looks at the folder, some 50 µs each: what was removed is refused well within a second. */
const LOOK_EVERY = 250

/**
 * Tells at boot what the keys mean (C6.3.4), and keeps them in step from then on, until what it answers is called. Every
 * process may do it: of several that make the same key, one wins. Never rejects: what fails is noted.
 */
export async function watchKeys(parts: KeyWatchParts): Promise<() => void> {
  await tellHistory(parts).catch((cause: unknown) =>
    parts.recorder.note('warn', 'signing_keys_history_unknown', { cause: String(cause) }),
  )
  const watch = new KeyWatch(parts)
  let turning = false
  const timer = setInterval(() => {
    if (turning) return
    turning = true
    void watch.turn().finally(() => {
      turning = false
    })
  }, LOOK_EVERY).unref()
  return () => clearInterval(timer)
}

async function tellHistory({ keys, store, recorder }: KeyWatchParts): Promise<void> {
  const finding = await recallKeys(keys, store)
  const meaning = meaningOf(finding, keys.folder)
  if (meaning !== undefined) recorder.note('error', `signing_keys_${finding}`, { meaning })
}

/** Every change is noted; trouble is noted once, and the keys in memory go on meanwhile. */
class KeyWatch {
  readonly #parts: KeyWatchParts
  #states: string
  #trouble: string | undefined
  #secretReplaced = false

  constructor(parts: KeyWatchParts) {
    this.#parts = parts
    this.#states = parts.keys.states
  }

  async turn(): Promise<void> {
    const { keys } = this.#parts
    // Both, whatever becomes of the other.
    const [tended, looked] = await Promise.allSettled([keys.tend(), this.#lookAtSecret()])
    const failed = [tended, looked].find((result) => result.status === 'rejected')
    const kept = await this.#tellChange().then(
      () => undefined,
      (thrown: unknown) => ({ reason: thrown }),
    )
    this.#tellTrouble(failed ?? kept)
  }

  async #lookAtSecret(): Promise<void> {
    const { keys, recorder, secretReplaced } = this.#parts
    if (await keys.lookAtSecret()) {
      recorder.note('warn', 'refresh_token_secret_replaced')
      this.#secretReplaced = true
    }
    if (!this.#secretReplaced) return
    await secretReplaced()
    this.#secretReplaced = false
  }

  async #tellChange(): Promise<void> {
    const { keys, recorder, store } = this.#parts
    if (keys.states === this.#states) return
    this.#states = keys.states
    recorder.note('info', 'signing_keys_changed', { keys: keys.states.split(', ') })
    await rememberKeys(keys.kids, store)
  }

  #tellTrouble(failed: { readonly reason?: unknown } | undefined): void {
    const trouble = failed === undefined ? undefined : reasonOf(failed.reason)
    if (trouble !== undefined && trouble !== this.#trouble)
      this.#parts.recorder.note('error', 'signing_keys_unreadable', { reason: trouble })
    this.#trouble = trouble
  }
}
