/** How the clients of the directory authenticate: what discovery announces (C6.3.2). */
import {
  type Client,
  CLIENT_AUTH_METHODS,
  type ClientAuthMethod,
  type ClientMethods,
} from '../contracts/people.ts'
import type { Store } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { CLIENT, readStoredClient } from './stored-directory.ts'

type KnownClient = Pick<Client, 'kind' | 'secretPost' | 'disabled'>

/** A client with a secret may always use Basic (C6.1.2). */
function methodsOf({ disabled, kind, secretPost }: KnownClient): readonly ClientAuthMethod[] {
  if (disabled) return []
  if (kind === 'public') return ['none']
  return secretPost ? ['client_secret_basic', 'client_secret_post'] : ['client_secret_basic']
}

export interface ClientMethodsParts {
  readonly configured: Iterable<KnownClient>
  readonly store: Pick<Store, 'list'>
  readonly clock: Clock
}

/** Records that are read at once. */
const PAGE = 1000
/** Milliseconds. Clients of the store come and go while the service runs. */
const KEPT_FOR = 60_000

/**
 * The methods of the configuration's clients and of the store's. The store is read when somebody asks, once a minute at
 * most, and only until every method was found. What was known before counts too where it cannot be read to its end.
 */
export class DirectoryMethods implements ClientMethods {
  readonly #parts: ClientMethodsParts
  readonly #configured: ReadonlySet<ClientAuthMethod>
  #known: ReadonlySet<ClientAuthMethod>
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<void> | undefined

  constructor(parts: ClientMethodsParts) {
    this.#parts = parts
    this.#configured = new Set([...parts.configured].flatMap(methodsOf))
    this.#known = this.#configured
  }

  async current(): Promise<ReadonlySet<ClientAuthMethod>> {
    const isFresh = this.#parts.clock.monotonic() - this.#readAt < KEPT_FOR
    if (!isFresh && this.#configured.size < CLIENT_AUTH_METHODS.length)
      await (this.#reading ??= this.#read().finally(() => {
        this.#reading = undefined
      }))
    return this.#known
  }

  async #read(): Promise<void> {
    const found = new Set(this.#configured)
    try {
      for await (const client of this.#stored()) {
        for (const method of methodsOf(client)) found.add(method)
        if (found.size === CLIENT_AUTH_METHODS.length) break
      }
      this.#known = found
    } catch {
      // Discovery is answered also while the store cannot be reached, or has more clients than there is time for.
      this.#known = found.union(this.#known)
    }
    this.#readAt = this.#parts.clock.monotonic()
  }

  async *#stored(): AsyncGenerator<KnownClient> {
    let after: string | undefined
    do {
      const page = await this.#parts.store.list(CLIENT, { limit: PAGE, after })
      for (const { value } of page) yield readStoredClient(value).record
      after = page.length === PAGE ? page.at(-1)?.key : undefined
    } while (after !== undefined)
  }
}
