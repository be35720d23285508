import type { SharedParts, Store } from '../../base/contracts/records/store.ts'
import type { Clock } from '../../base/kernel/clock.ts'

type Verb = {
  [K in keyof Store]: Store[K] extends (...args: never[]) => Promise<unknown> ? K : never
}[keyof Store]

export const STORE_VERBS = [
  'create',
  'find',
  'consume',
  'redeem',
  'replace',
  'remove',
  'list',
  'listBy',
  'pageBy',
  'removeBy',
  'countBy',
  'lastUseBy',
  'append',
  'changes',
  'hold',
  'release',
  'purge',
] as const satisfies readonly Verb[]

export type StoreVerb = (typeof STORE_VERBS)[number]

/** Called after each call. `seconds`: how long it took. */
type StoreCalled = (verb: StoreVerb, seconds: number, failed: boolean) => void

export class MeasuredStore implements Store {
  readonly #store: Store
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #called: StoreCalled
  #answered = true

  constructor(store: Store, clock: Pick<Clock, 'monotonic'>, called: StoreCalled) {
    this.#store = store
    this.#clock = clock
    this.#called = called
  }

  /** Whether it has answered the last call that ended, and has no lasting problem. */
  get isUp(): boolean {
    return this.#answered && this.#store.trouble === undefined
  }

  get shared(): SharedParts | undefined {
    return this.#store.shared
  }

  get patience(): number | undefined {
    return this.#store.patience
  }

  get forget(): Store['forget'] {
    return this.#store.forget
  }

  get trouble(): string | undefined {
    return this.#store.trouble
  }

  get refusesWrites(): string | undefined {
    return this.#store.refusesWrites
  }

  readonly create: Store['create'] = (...args) => this.#measure('create', this.#store.create(...args))
  readonly find: Store['find'] = (...args) => this.#measure('find', this.#store.find(...args))
  readonly consume: Store['consume'] = (...args) => this.#measure('consume', this.#store.consume(...args))
  readonly redeem: Store['redeem'] = (...args) => this.#measure('redeem', this.#store.redeem(...args))
  readonly replace: Store['replace'] = (...args) => this.#measure('replace', this.#store.replace(...args))
  readonly remove: Store['remove'] = (...args) => this.#measure('remove', this.#store.remove(...args))
  readonly list: Store['list'] = (...args) => this.#measure('list', this.#store.list(...args))
  readonly listBy: Store['listBy'] = (...args) => this.#measure('listBy', this.#store.listBy(...args))
  readonly pageBy: Store['pageBy'] = (...args) => this.#measure('pageBy', this.#store.pageBy(...args))
  readonly removeBy: Store['removeBy'] = (...args) => this.#measure('removeBy', this.#store.removeBy(...args))
  readonly countBy: Store['countBy'] = (...args) => this.#measure('countBy', this.#store.countBy(...args))
  readonly lastUseBy: Store['lastUseBy'] = (...args) =>
    this.#measure('lastUseBy', this.#store.lastUseBy(...args))
  readonly append: Store['append'] = (...args) => this.#measure('append', this.#store.append(...args))
  readonly changes: Store['changes'] = (...args) => this.#measure('changes', this.#store.changes(...args))
  readonly hold: Store['hold'] = (...args) => this.#measure('hold', this.#store.hold(...args))
  readonly release: Store['release'] = (...args) => this.#measure('release', this.#store.release(...args))
  readonly purge: Store['purge'] = (...args) => this.#measure('purge', this.#store.purge(...args))

  silentSince(time: number): number {
    return this.#store.silentSince?.(time) ?? 0
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  async #measure<T>(verb: StoreVerb, answer: Promise<T>): Promise<T> {
    const start = this.#clock.monotonic()
    let failed = true
    try {
      const value = await answer
      failed = false
      return value
    } finally {
      this.#answered = !failed
      this.#called(verb, (this.#clock.monotonic() - start) / 1000, failed)
    }
  }
}
