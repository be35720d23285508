import { hash } from 'node:crypto'
import type { Client } from '../../base/contracts/people/people.ts'
import type { Entry, NewRecord, Store } from '../../base/contracts/records/store.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { newOrderedId, newSecret } from '../../base/kernel/ids.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'
import { createOf } from '../directory/records/stored-directory.ts'
import type { IdentityConfig } from '../dependencies/schema.ts'
import { begunAs, RememberedRecords } from './families.ts'

/**
 * Kind of record: authorization codes, by their SHA-256 (C6.2.4).
 *
 * The family id of a code's tokens is drawn with the code, so that a second use can revoke all tokens of the first one
 * (C6.1.6). One write uses the code, notes that its tokens are made, and stores their family, before they are sent: so a
 * second use finds either a code that gave nothing, or a family to end. If there are many parallel uses, the first one
 * succeeds, and its tokens are still revoked.
 *
 * A record is kept for the code's lifetime; once redeemed, until the last of its tokens has expired (C6.1.6).
 *
 * The process that gave out a code remembers its record until the first attempt to use it, so that an exchange at this
 * process costs one message to the store.
 */
export const CODE = 'code'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
export type CodeRecord = {
  readonly client: string
  readonly redirectUri: string
  /** S256; null if none was sent. */
  readonly challenge: string | null
  readonly nonce: string | null
  /** The thumbprint of the key that its exchange has to prove (RFC 9449 §10); absent if any will do, or none. */
  readonly jkt?: string
  readonly subject: string
  /** As granted, with the target. */
  readonly scope: string
  /** When the user authenticated, in seconds since the epoch. */
  readonly authTime: number
  readonly family: string
  /** `RevocationRules.asOf` of the call that issued it; absent if an older version did. */
  readonly asOf?: number
  /** The id of the session, for a client that is told of its end (C6.3.3a). */
  readonly sid?: string
  /** The scope as it was asked for, for a client that is answered in its own words (C6.1.3). */
  readonly words?: string
  /** True once its tokens were made. */
  readonly settled: boolean
}

/** A code that is drawn. Nobody can redeem it before `open` has stored it. */
interface DrawnCode {
  readonly code: string
  /** The family of the tokens that it gives. */
  readonly family: string
  /** @param write stores the record, and resolves with false if there is one already; by default on its own */
  readonly open: (write?: (record: NewRecord) => Promise<boolean>) => Promise<void>
}

export interface FoundCode {
  readonly record: CodeRecord
  readonly entry: Entry
}

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface Codes {
  /** @param lifetime milliseconds */
  draw(record: NewCode, business: string | undefined, lifetime: number): DrawnCode
  /**
   * Undefined for a code that is unknown, expired, or ended by a rule. Changes nothing. If another process has used or
   * removed it, only `consume` and `redeem` may notice.
   */
  find(code: string): Promise<FoundCode | undefined>
  /** Uses a code that gives no tokens. */
  consume(code: FoundCode): Promise<CodeUse>
  /**
   * Uses a code whose tokens are made, and stores what begins with them.
   * @param expiresAt when the last of its tokens has expired, milliseconds since the epoch: the code is kept until then
   */
  redeem(code: FoundCode, begun: readonly NewRecord[], expiresAt: number): Promise<CodeUse>
}

/**
 * Only the first use of a code is `first`. `settled`: it was used before, and its tokens were made, so the caller must end
 * their family. `spent`: it was used before and gave nothing. `gone`: it was withdrawn, or it has expired.
 */
export type CodeUse = 'first' | 'settled' | 'spent' | 'gone'

type NewCode = Omit<CodeRecord, 'family' | 'settled'>

interface CodeOwner {
  readonly client: string
  readonly subject: string
  /** Selects codes by their scope. */
  readonly concerns: (scope: string) => boolean
}

const keyOf = (code: string): string => hash('sha256', code, 'base64url')
const recordOf = (entry: Entry): CodeRecord => entry.value as CodeRecord

type Taken = { readonly first: boolean; readonly entry: Entry } | undefined

function useOf(taken: Taken): CodeUse {
  if (taken === undefined) return 'gone'
  if (taken.first) return 'first'
  return recordOf(taken.entry).settled ? 'settled' : 'spent'
}

export function openCodes({ store, clock, rules }: Pick<IdentityDeps, 'store' | 'clock' | 'rules'>): Codes {
  const given = new RememberedRecords()
  const find = async (key: string): Promise<FoundCode | undefined> => {
    const entry = given.recall(key, clock.now()) ?? (await store.find(CODE, key))
    if (entry === undefined) return undefined
    const record = recordOf(entry)
    return rules.hasEnded(begunAs(record.family, record)) ? undefined : { entry, record }
  }
  return {
    draw(record, business, lifetime) {
      const code = newSecret()
      const family = newOrderedId(clock.now())
      const { client, subject } = record
      const indexes = { family, client, subject, ...(business !== undefined && { business }) }
      const open = async (write?: (created: NewRecord) => Promise<boolean>): Promise<void> => {
        const key = keyOf(code)
        const value: CodeRecord = { ...record, family, settled: false }
        const expiresAt = clock.now() + lifetime
        if (await createOf(subject, { kind: CODE, key, value, expiresAt, indexes }, store, write))
          given.remember({ key, value, version: 1, expiresAt, usedAt: undefined })
      }
      return { code, family, open }
    },
    find: (code) => find(keyOf(code)),
    async consume({ entry: { key } }) {
      given.forget(key)
      return useOf(await store.consume(CODE, key))
    },
    async redeem({ entry: { key }, record }, begun, expiresAt) {
      given.forget(key)
      return useOf(await store.redeem(CODE, key, { value: { ...record, settled: true }, expiresAt }, begun))
    },
  }
}

/** Removes a user's codes for a client. Resolves with the families of the tokens that they gave or could have given. */
export async function withdrawCodes(
  store: Pick<Store, 'listBy' | 'remove'>,
  { client, subject, concerns }: CodeOwner,
): Promise<readonly string[]> {
  const entries = await store.listBy(CODE, 'subject', subject)
  const own = entries.filter((entry) => {
    const record = recordOf(entry)
    return record.client === client && concerns(record.scope)
  })
  await Promise.all(own.map(({ key }) => store.remove(CODE, key)))
  return own.map((entry) => recordOf(entry).family)
}

/** How long a code of the client is valid, in milliseconds. */
export const codeLifetimeOf = ({ limits }: Client, { code }: IdentityConfig): number =>
  Math.min(code.lifetime, limits?.codeLifetime ?? Number.POSITIVE_INFINITY)

const refuse = (say: string): Fault => new Fault('oauth_bad_request', { say })

/** RFC 7636 §4.2: SHA-256, base64url. */
const S256 = /^[A-Za-z0-9_-]{43}$/

/** A confidential client that protects its code by the id_token's nonce, or may leave it unprotected, needs no PKCE (C6.2.1). */
function mayDoWithout(params: ReadonlyMap<string, string>, openid: boolean, client: Client): boolean {
  if (client.kind === 'public') return false
  return !client.requireBinding || (!client.requirePkce && openid && params.has('nonce'))
}

/**
 * The PKCE challenge of an authorization request (RFC 7636 §4.3); undefined if it has none and needs none.
 * @throws Fault `oauth_bad_request` if it is missing, malformed, or not S256
 */
export function readChallenge(
  params: ReadonlyMap<string, string>,
  openid: boolean,
  client: Client,
): string | undefined {
  const challenge = params.get('code_challenge')
  const method = params.get('code_challenge_method')
  if (challenge === undefined) {
    if (method !== undefined) throw refuse('The parameter code_challenge is missing.')
    if (mayDoWithout(params, openid, client)) return undefined
    throw refuse('The parameter code_challenge is missing: PKCE is required.')
  }
  // Without a method it would be `plain`, which does not protect the code from someone who can read the request.
  if (method !== 'S256') throw refuse('The code_challenge_method must be S256.')
  if (!S256.test(challenge)) throw refuse('The code_challenge is not that of a SHA-256.')
  return challenge
}
