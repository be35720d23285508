import { hash } from 'node:crypto'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Entry, NewRecord } from '../../base/contracts/records/store.ts'
import { networkOf } from '../../base/http/head/addresses.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'

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

export interface PushedRequest extends PushedRecord {
  readonly uri: string
  readonly entry: Entry
  /** Undefined if this browser has not opened it yet. */
  readonly opening: OpeningRecord | undefined
}

interface NewPushedRequest {
  readonly client: Client
  readonly params: ReadonlyMap<string, string>
  readonly address: string
}

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface PushedRequests {
  /** Resolves with its URI. @throws Fault `too_many_pushed_requests` */
  push(request: NewPushedRequest): Promise<string>
  /**
   * @param cookie that the browser has sent
   * @throws Fault `invalid_request_uri` for one that is unknown, used up, of another client, or that this browser cannot open
   */
  find(uri: string, client: string, cookie: string | undefined): Promise<PushedRequest>
  /** From now on the browser of this cookie has its time, however old the request is. */
  open(request: PushedRequest, cookie: string): Promise<void>
  /** After a login: what the browser has opened belongs to its new cookie. */
  carryOver(cookie: string, next: string): Promise<void>
  /** The decision, once over all browsers. Stores `creates` with it. @throws Fault `invalid_request_uri` if there was one */
  useUp(request: PushedRequest, creates: readonly NewRecord[]): Promise<void>
}

export const isPushed = (uri: string): boolean => uri.startsWith(PREFIX)

const keyOf = (text: string): string => hash('sha256', text, 'base64url')

/** The index `family` holds together what belongs to one network, or to one browser. */
const indexesOf = ({ address, client: { id, kind } }: NewPushedRequest) =>
  kind === 'public' ? { client: id, family: networkOf(address) } : { client: id }

export function openPushedRequests({
  clock,
  config,
  recorder,
  store,
}: Pick<IdentityDeps, 'clock' | 'config' | 'recorder' | 'store'>): PushedRequests {
  const refuse = (detail: string): Fault => {
    recorder.count?.('pushedRequests', 'invalid')
    return new Fault('invalid_request_uri', { detail })
  }

  const findOpening = async (request: string, cookie: string): Promise<OpeningRecord | undefined> =>
    (await store.find(OPENING, `${request}.${keyOf(cookie)}`))?.value as OpeningRecord | undefined

  const keepOpening = async (value: OpeningRecord, cookie: string, expiresAt: number): Promise<void> => {
    const browser = keyOf(cookie)
    await store.create(OPENING, `${value.request}.${browser}`, {
      value,
      expiresAt,
      indexes: { family: browser },
    })
  }

  return {
    async push(request) {
      const uri = PREFIX + newSecret()
      const until = clock.now() + config.par.lifetime
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
    },
    async find(uri, client, cookie) {
      const entry = await store.find(PUSHED_REQUEST, keyOf(uri))
      if (entry === undefined) throw refuse('unknown, expired or used up')
      const record = entry.value as PushedRecord
      if (entry.usedAt !== undefined) throw refuse('used up')
      if (record.client !== client) throw refuse('the request of another client')
      const opening = cookie === undefined ? undefined : await findOpening(entry.key, cookie)
      if (opening === undefined && clock.now() >= record.until) throw refuse('expired for this browser')
      return { ...record, uri, entry, opening }
    },
    async open({ client, entry: { key, version }, opened, opening, params, until }, cookie) {
      if (opening !== undefined) return
      const value: PushedRecord = { client, params, until, opened: true }
      // If it was changed meanwhile, another browser has opened it too, or decided.
      if (!opened) await store.replace(PUSHED_REQUEST, key, version, value, until + OPEN_FOR_MS)
      const others = await store.list(OPENING, { prefix: `${key}.`, after: undefined, limit: MOST_BROWSERS })
      if (others.length < MOST_BROWSERS)
        await keepOpening({ request: key, loggedIn: false }, cookie, clock.now() + OPEN_FOR_MS)
    },
    async carryOver(cookie, next) {
      const page = { after: undefined, limit: MOST_KEPT }
      const openings = await store.pageBy(OPENING, { family: keyOf(cookie) }, page)
      for (const { expiresAt = 0, value } of openings)
        await keepOpening({ ...(value as OpeningRecord), loggedIn: true }, next, expiresAt)
    },
    async useUp({ client, entry: { key } }, creates) {
      // The parameters are no longer needed.
      const value = { client, params: {}, until: 0, opened: true } satisfies PushedRecord
      const used = await store.redeem(PUSHED_REQUEST, key, { value, expiresAt: clock.now() }, creates)
      if (used?.first !== true) throw refuse('used up')
      recorder.count?.('pushedRequests', 'decided')
    },
  }
}
