import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import { changeRecord, type Store, type StoredValue } from '../../../base/contracts/records/store.ts'
import { KeyError } from '../../../base/kernel/key-error.ts'
import type { KeyPlace } from './key-place.ts'
import type { ServiceKeys } from './service-keys.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'

/**
 * The store remembers which keys this service has signed with. The keys alone cannot show whether this is a first
 * start or the keys were lost, and whether the keys belong to another installation.
 */
const KIND = 'signing_keys'
const KEY = 'own'
/** Most key ids remembered: enough for years of rotations. */
const REMEMBERED = 100

/**
 * `first`: the store remembers no key. `known`: it remembers one of these. `lost`: the keys were made just now.
 * `foreign`: the store remembers other keys.
 */
type HistoryResult = 'first' | 'known' | 'lost' | 'foreign'

interface PresentKeys {
  readonly kids: readonly string[]
  /** Whether there were no keys, and these were made just now. */
  readonly made: boolean
}

const kidsOf = (value: StoredValue | undefined): readonly string[] =>
  Array.isArray(value?.['kids']) ? (value['kids'] as readonly string[]) : []

/** The ids of the keys that this service has used, oldest first. Rejects with Fault `identity_unavailable`. */
export const rememberedKeys = async (store: Store): Promise<readonly string[]> =>
  kidsOf((await store.find(KIND, KEY))?.value)

/** Compares with the remembered keys, and remembers these. Rejects with Fault `identity_unavailable`. */
export async function compareWithHistory({ kids, made }: PresentKeys, store: Store): Promise<HistoryResult> {
  const before = await rememberedKeys(store)
  await rememberKeys(kids, store)
  if (before.length === 0) return 'first'
  if (kids.some((kid) => before.includes(kid))) return 'known'
  return made ? 'lost' : 'foreign'
}

/** To be called at every change of the keys. Rejects with Fault `identity_unavailable`. */
export async function rememberKeys(
  kids: readonly string[],
  store: Pick<Store, 'find' | 'create' | 'replace'>,
): Promise<void> {
  await changeRecord(store, KIND, KEY, (value) => {
    const before = kidsOf(value)
    const fresh = kids.filter((kid) => !before.includes(kid))
    return value !== undefined && fresh.length === 0
      ? undefined
      : { kids: [...before, ...fresh].slice(-REMEMBERED) }
  })
}

export const historyWarning = (
  finding: HistoryResult,
  { name }: Pick<KeyPlace, 'name'>,
): string | undefined => MEANINGS[finding]?.(name)

const CONSEQUENCE =
  'all access tokens and id_tokens issued before are refused from now on, refresh tokens too (unless their secret is ' +
  'still there), and whoever keeps the old key set must fetch the new one. If you did not want this: stop, restore the ' +
  'right keys from a backup, and start again.'

const MEANINGS: Readonly<Record<HistoryResult, ((place: string) => string) | undefined>> = {
  first: undefined,
  known: undefined,
  lost: (place) =>
    `There were no signing keys in ${place}, although this service has signed before: they were lost, removed or ` +
    `moved. New keys were made, so ${CONSEQUENCE}`,
  foreign: (place) =>
    `None of the signing keys in ${place} is one that this service has signed with: the keys or the store belong to ` +
    `another installation. With these keys ${CONSEQUENCE}`,
}

interface KeyWatchParts {
  readonly keys: ServiceKeys
  readonly store: Store
  readonly recorder: Pick<Recorder, 'note'>
  /** Differs after the keys in the store have changed. `age`: milliseconds since it was read. Undefined: not known. */
  readonly mark?: () => { readonly mark: string; readonly age: number } | undefined
  /** Called after the secret for refresh tokens was replaced and the new one is in use here. */
  readonly secretReplaced: () => Promise<void>
}

interface Failed {
  readonly reason?: unknown
}

async function reportHistory({ keys, store, recorder }: KeyWatchParts): Promise<void> {
  const finding = await compareWithHistory(keys, store)
  const meaning = historyWarning(finding, keys.place)
  if (meaning !== undefined) recorder.note('error', `signing_keys_${finding}`, { meaning })
}

/**
 * Keeps the keys in step with their place. Every process may do it: if several make the same key, one wins. Logs every change.
 * Logs a failure once; the keys in memory stay in use meanwhile.
 */
export class KeyWatch {
  readonly #parts: KeyWatchParts
  #timer: NodeJS.Timeout | undefined
  #running: Promise<unknown> | undefined
  #states: string
  #trouble: string | undefined
  /** The mark of the store before the last successful reading. */
  #mark: string | undefined
  #secretReplaced = false

  constructor(parts: KeyWatchParts) {
    this.#parts = parts
    this.#states = parts.keys.states
  }

  /** Logs whether the keys are the right ones (C6.3.4), and begins. Never rejects: failures are logged. */
  async start(): Promise<void> {
    await reportHistory(this.#parts).catch((cause: unknown) =>
      this.#parts.recorder.note('warn', 'signing_keys_history_unknown', { cause: String(cause) }),
    )
    this.#timer = setInterval(() => {
      if (this.#running === undefined) void this.#begin(() => this.#run())
    }, this.#parts.keys.place.every).unref()
  }

  /** Resolves when nothing is written to the place any more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
  }

  /** Takes what is in the place now into use. Rejects as KeyPlace does; it is tried again at the next look. */
  async follow(): Promise<void> {
    // A look that has begun may have read what was there before.
    while (this.#running !== undefined) await this.#running
    const failed = await this.#begin(async () => {
      await this.#parts.keys.settled()
      return this.#read(undefined)
    })
    if (failed !== undefined) throw failed.reason
  }

  #begin<T>(look: () => Promise<T>): Promise<T> {
    const run = look().finally(() => {
      this.#running = undefined
    })
    this.#running = run
    return run
  }

  async #run(): Promise<void> {
    const { keys, mark } = this.#parts
    const known = mark?.()
    if (known !== undefined && known.mark === this.#mark && keys.confirm(known.age)) {
      await this.#reportChange().catch((thrown: unknown) => this.#reportTrouble({ reason: thrown }))
      return
    }
    await this.#read(known?.mark)
  }

  /** Returns what has failed, which is logged. */
  async #read(mark: string | undefined): Promise<Failed | undefined> {
    const { keys } = this.#parts
    // Each of them runs even if the other fails.
    const [tended, looked] = await Promise.allSettled([keys.rotateIfDue(), this.#refreshSecret()])
    const failed = [tended, looked].find((result) => result.status === 'rejected')
    const kept = await this.#reportChange().then(
      () => undefined,
      (thrown: unknown) => ({ reason: thrown }),
    )
    this.#mark = failed === undefined ? mark : undefined
    this.#reportTrouble(failed ?? kept)
    return failed
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

  #reportTrouble(failed: Failed | undefined): void {
    const { keys } = this.#parts
    const trouble = failed === undefined ? undefined : messageOf(failed.reason)
    keys.trouble = failed?.reason instanceof KeyError && trouble === this.#trouble ? failed.reason : undefined
    if (trouble !== undefined && trouble !== this.#trouble)
      this.#parts.recorder.note('error', 'signing_keys_unreadable', { reason: trouble })
    this.#trouble = trouble
  }
}
