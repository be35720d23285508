import { hash } from 'node:crypto'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Entry, NewRecord } from '../../base/contracts/records/store.ts'
import { networkOf } from '../../base/http/head/addresses.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import type { ReferencedRequest } from '../../identity/dependencies/client-security.ts'
import type { IdentityDeps } from '../../identity/dependencies/dependencies.ts'
import { identitySections } from './schema.ts'

/**
 * Kind of record: authorization requests that clients have pushed, by the SHA-256 of their reference (C6.2.1a). It expires
 * with the request's lifetime, unless a browser has opened it; then it expires with the time of the last such browser.
 * The decision uses it up in the write that stores the code, so that only one of many browsers gets a code.
 */
export const PUSHED_REQUEST = 'pushed_request'

/** Kind of record: a browser has opened a pushed request. The key is that of the request and the cookie's SHA-256. */
const OPENING = 'pushed_request_opening'

/** The beginning of every reference (RFC 9126 §2.2). */
const PREFIX = 'urn:ietf:params:oauth:request_uri:'

/** How long a browser has, from its first look at the request to the decision, in milliseconds. */
const OPEN_FOR_MS = 30 * 60_000

/** How many requests of one client may be open at a time; for a public one, which proves nothing, from one network. */
const MOST_OPEN = 1000

/** How many browsers that opened a request are remembered. Programs look at links before people do. */
const MOST_BROWSERS = 100

/** How many open requests a browser keeps after a login. */
const MOST_KEPT = 20

/** A type alias, because an interface has no index signature and so is no StoredValue. */
type PushedRecord = {
  readonly client: string
  readonly params: Readonly<Record<string, string>>
  /** Until then any browser may open it, milliseconds since the epoch. */
  readonly until: number
  readonly opened: boolean
}

type OpeningRecord = {
  readonly request: string
  /** Whether somebody has logged in in this browser since. */
  readonly loggedIn: boolean
}

interface NewPushedRequest {
  readonly client: Client
  readonly params: ReadonlyMap<string, string>
  readonly address: string
}

const keyOf = (text: string): string => hash('sha256', text, 'base64url')

/** The index `family` holds together what belongs to one network, or to one browser. */
const indexesOf = ({ address, client: { id, kind } }: NewPushedRequest) =>
  kind === 'public' ? { client: id, family: networkOf(address) } : { client: id }

type Parts = Pick<IdentityDeps, 'clock' | 'config' | 'recorder' | 'store'>

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export class PushedRequests {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Resolves with its URI. @throws Fault `too_many_pushed_requests` */
  async push(request: NewPushedRequest): Promise<string> {
    const { clock, config, store } = this.#parts
    const uri = PREFIX + newSecret()
    const until = clock.now() + identitySections(config).par.lifetime
    const { client, params } = request
    const value: PushedRecord = {
      client: client.id,
      params: Object.fromEntries(params),
      until,
      opened: false,
    }
    const indexes = indexesOf(request)
    await store.create(PUSHED_REQUEST, keyOf(uri), { value, expiresAt: until, indexes })
    // Counted with it, so that requests at the same time, on other nodes too, don't exceed the limit together.
    if ((await store.countBy(PUSHED_REQUEST, indexes)) <= MOST_OPEN) return uri
    await store.remove(PUSHED_REQUEST, keyOf(uri))
    throw new Fault('too_many_pushed_requests')
  }

  /** As `ClientSecurity.findRequest`. */
  async find(
    uris: readonly string[],
    client: string,
    cookie: string | undefined,
  ): Promise<ReferencedRequest | undefined> {
    const { clock, store } = this.#parts
    const uri = uris.find((each) => each.startsWith(PREFIX))
    if (uri === undefined) return undefined
    if (uris.length > 1) throw new Fault('invalid_request_uri', { detail: 'a second request_uri beside' })
    const entry = await store.find(PUSHED_REQUEST, keyOf(uri))
    if (entry === undefined) throw this.#refuse('unknown, expired or used up')
    const record = entry.value as PushedRecord
    if (entry.usedAt !== undefined) throw this.#refuse('used up')
    if (record.client !== client) throw this.#refuse('the request of another client')
    const opening = cookie === undefined ? undefined : await this.#findOpening(entry.key, cookie)
    if (opening === undefined && clock.now() >= record.until) throw this.#refuse('expired for this browser')
    return {
      client,
      uri,
      params: record.params,
      loggedIn: opening?.loggedIn === true,
      open: async (by) => {
        if (opening === undefined) await this.#open(entry, by)
      },
      useUp: (creates) => this.#useUp(entry, creates),
    }
  }

  /** As `ClientSecurity.carryOver`. */
  async carryOver(cookie: string, next: string): Promise<void> {
    const page = { after: undefined, limit: MOST_KEPT }
    const openings = await this.#parts.store.pageBy(OPENING, { family: keyOf(cookie) }, page)
    for (const { expiresAt = 0, value } of openings)
      await this.#keepOpening({ ...(value as OpeningRecord), loggedIn: true }, next, expiresAt)
  }

  async #open({ key, value: before, version }: Entry, cookie: string): Promise<void> {
    const { clock, store } = this.#parts
    const { client, opened, params, until } = before as PushedRecord
    const value: PushedRecord = { client, params, until, opened: true }
    // If it was changed meanwhile, another browser has opened it too, or decided.
    if (!opened) await store.replace(PUSHED_REQUEST, key, version, value, until + OPEN_FOR_MS)
    const others = await store.list(OPENING, { prefix: `${key}.`, after: undefined, limit: MOST_BROWSERS })
    if (others.length < MOST_BROWSERS)
      await this.#keepOpening({ request: key, loggedIn: false }, cookie, clock.now() + OPEN_FOR_MS)
  }

  async #useUp({ key, value: before }: Entry, creates: readonly NewRecord[]): Promise<void> {
    const { clock, recorder, store } = this.#parts
    const { client } = before as PushedRecord
    // The parameters are no longer needed.
    const value = { client, params: {}, until: 0, opened: true } satisfies PushedRecord
    const used = await store.redeem(PUSHED_REQUEST, key, { value, expiresAt: clock.now() }, creates)
    if (used?.first !== true) throw this.#refuse('used up')
    recorder.count?.('pushedRequests', 'decided')
  }

  #refuse(detail: string): Fault {
    this.#parts.recorder.count?.('pushedRequests', 'invalid')
    return new Fault('invalid_request_uri', { detail })
  }

  async #findOpening(request: string, cookie: string): Promise<OpeningRecord | undefined> {
    const found = await this.#parts.store.find(OPENING, `${request}.${keyOf(cookie)}`)
    return found?.value as OpeningRecord | undefined
  }

  async #keepOpening(value: OpeningRecord, cookie: string, expiresAt: number): Promise<void> {
    const browser = keyOf(cookie)
    await this.#parts.store.create(OPENING, `${value.request}.${browser}`, {
      value,
      expiresAt,
      indexes: { family: browser },
    })
  }
}
