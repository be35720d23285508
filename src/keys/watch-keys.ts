import type { Entry, Store } from '../contracts/store.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { reasonOf } from './private-folder.ts'
import type { ServiceKeys } from './service-keys.ts'

/**
 * Which keys this service has signed with, as the store remembers: the folder alone cannot tell a first start from a
 * folder that was lost, or another installation's from one's own.
 */
const KIND = 'signing_keys'
const KEY = 'own'
/** Key ids remembered: years of rotations. */
const REMEMBERED = 100

/** `first`: nothing was remembered. `known`: a key of before is there. `lost`: all are new. `foreign`: none is known. */
export type HistoryResult = 'first' | 'known' | 'lost' | 'foreign'

export interface PresentKeys {
  readonly kids: readonly string[]
  /** Whether the folder had none, and they were made just now. */
  readonly made: boolean
}

type KeyHistory = { readonly kids: readonly string[] }

const isHistory = (value: Readonly<Record<string, unknown>>): value is KeyHistory =>
  Array.isArray(value['kids'])

const kidsOf = (entry: Entry | undefined): readonly string[] =>
  entry !== undefined && isHistory(entry.value) ? entry.value.kids : []

/** The ids of the keys that this service has had, oldest first. */
export const rememberedKeys = async (store: Store): Promise<readonly string[]> =>
  kidsOf(await store.find(KIND, KEY))

/**
 * What the keys that are present mean, told once: they are remembered from then on. Rejects with Fault
 * `identity_unavailable` if the store can't be reached.
 */
export async function compareWithHistory({ kids, made }: PresentKeys, store: Store): Promise<HistoryResult> {
  const before = await rememberedKeys(store)
  await rememberKeys(kids, store)
  if (before.length === 0) return 'first'
  if (kids.some((kid) => before.includes(kid))) return 'known'
  return made ? 'lost' : 'foreign'
}

/** Adds keys to what is remembered. Called at every change of the keys, or a long-running service would forget itself. */
export async function rememberKeys(kids: readonly string[], store: Store): Promise<void> {
  for (;;) {
    const entry = await store.find(KIND, KEY)
    const before = kidsOf(entry)
    const fresh = kids.filter((kid) => !before.includes(kid))
    if (entry !== undefined && fresh.length === 0) return
    const value: KeyHistory = { kids: [...before, ...fresh].slice(-REMEMBERED) }
    // Another process may be doing the same: whoever comes second reads again.
    const kept =
      entry === undefined
        ? await store.create(KIND, KEY, { value })
        : await store.replace(KIND, KEY, entry.version, value)
    if (kept) return
  }
}

/** What an operator is told at boot; undefined where there is nothing to tell. */
export const historyWarning = (finding: HistoryResult, folder: string): string | undefined =>
  MEANINGS[finding]?.replaceAll('FOLDER', folder)

const CONSEQUENCE =
  'every access token and id_token issued before is refused from now on (clients that hold a refresh token get new ' +
  'ones with it), and whoever keeps the old key set must fetch the new one. If this was not meant: stop, put the right ' +
  'folder back from a backup, and start again.'

const MEANINGS: Readonly<Record<HistoryResult, string | undefined>> = {
  first: undefined,
  known: undefined,
  lost: `The folder of the signing keys, FOLDER, was empty, though this service has signed before: it was lost, emptied or moved. New keys were made, so ${CONSEQUENCE}`,
  foreign: `The folder of the signing keys, FOLDER, holds none of the keys that this service has signed with: it is another installation's, or the store is. With these keys ${CONSEQUENCE}`,
}

export interface KeyWatchParts {
  readonly keys: ServiceKeys
  readonly store: Store
  readonly recorder: Pick<Recorder, 'note'>
  /** Called when another secret for refresh tokens stands in the folder, and is in force here. */
  readonly secretReplaced: () => Promise<void>
}

/** Milliseconds between two looks at the folder, some 50 µs each: what was removed is refused well within a second. */
const INTERVAL = 250

/**
 * Tells at boot what the keys mean (C6.3.4), and keeps them in step from then on, until what it answers is called. Every
 * process may do it: of several that make the same key, one wins. Never rejects: what fails is noted.
 */
export async function watchKeys(parts: KeyWatchParts): Promise<() => void> {
  await reportHistory(parts).catch((cause: unknown) =>
    parts.recorder.note('warn', 'signing_keys_history_unknown', { cause: String(cause) }),
  )
  const watch = new KeyWatch(parts)
  let running = false
  const timer = setInterval(() => {
    if (running) return
    running = true
    void watch.run().finally(() => {
      running = false
    })
  }, INTERVAL).unref()
  return () => clearInterval(timer)
}

async function reportHistory({ keys, store, recorder }: KeyWatchParts): Promise<void> {
  const finding = await compareWithHistory(keys, store)
  const meaning = historyWarning(finding, keys.folder)
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

  async run(): Promise<void> {
    const { keys } = this.#parts
    // Both, whatever becomes of the other.
    const [tended, looked] = await Promise.allSettled([keys.rotateIfDue(), this.#refreshSecret()])
    const failed = [tended, looked].find((result) => result.status === 'rejected')
    const kept = await this.#reportChange().then(
      () => undefined,
      (thrown: unknown) => ({ reason: thrown }),
    )
    this.#reportTrouble(failed ?? kept)
  }

  async #refreshSecret(): Promise<void> {
    const { keys, recorder, secretReplaced } = this.#parts
    if (await keys.refreshSecret()) {
      recorder.note('warn', 'refresh_token_secret_replaced')
      this.#secretReplaced = true
    }
    if (!this.#secretReplaced) return
    await secretReplaced()
    this.#secretReplaced = false
  }

  async #reportChange(): Promise<void> {
    const { keys, recorder, store } = this.#parts
    if (keys.states === this.#states) return
    this.#states = keys.states
    recorder.note('info', 'signing_keys_changed', { keys: keys.states.split(', ') })
    await rememberKeys(keys.kids, store)
  }

  #reportTrouble(failed: { readonly reason?: unknown } | undefined): void {
    const trouble = failed === undefined ? undefined : reasonOf(failed.reason)
    if (trouble !== undefined && trouble !== this.#trouble)
      this.#parts.recorder.note('error', 'signing_keys_unreadable', { reason: trouble })
    this.#trouble = trouble
  }
}
