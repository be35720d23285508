import { createHash } from 'node:crypto'
import type { Entry, Store } from '../../base/contracts/records/store.ts'
import type { RevocationCause, TokenRevoker } from '../../base/contracts/records/tokens.ts'
import type { IdentityDeps } from '../dependencies/dependencies.ts'
import { createOf } from '../directory/records/stored-directory.ts'
import { type GrantedScope, readGrantedTarget } from '../dependencies/scopes.ts'
import { withdrawCodes } from './codes.ts'
import { FAMILY, type FamilyRecord } from './families.ts'

/** Kind of record: what a user has allowed a client at a business (C6.2.2). Kept until it is withdrawn. */
export const CONSENT = 'consent'

/** A type alias, because an interface has no index signature and so is no StoredValue. */
type ConsentRecord = {
  readonly client: string
  readonly subject: string
  /** Null if the scope has no target. */
  readonly business: string | null
  /** All values that were allowed so far, with the target. */
  readonly scopes: readonly string[]
  /** Time of the last consent, milliseconds since the epoch. */
  readonly at: number
}

export interface Consent extends ConsentRecord {
  readonly key: string
}

interface Consenting {
  readonly client: string
  readonly subject: string
  readonly scope: GrantedScope
}

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export interface Consents {
  covers(consenting: Consenting): Promise<boolean>
  remember(consenting: Consenting): Promise<void>
  find(key: string): Promise<Consent | undefined>
  listOf(subject: string): Promise<readonly Consent[]>
}

const businessOf = ({ scope }: Consenting): string | null => scope.target?.business ?? null

const keyOf = (consenting: Consenting): string =>
  createHash('sha256')
    .update(JSON.stringify([consenting.client, consenting.subject, businessOf(consenting)]))
    .digest('base64url')

export const consentOf = ({ key, value }: Entry): Consent => ({ key, ...(value as ConsentRecord) })

export function openConsents({ store, clock }: Pick<IdentityDeps, 'store' | 'clock'>): Consents {
  const find = async (key: string): Promise<Consent | undefined> => {
    const entry = await store.find(CONSENT, key)
    return entry && consentOf(entry)
  }

  /** False if another call has changed the record meanwhile. */
  const write = async (consenting: Consenting): Promise<boolean> => {
    const { client, subject, scope } = consenting
    const business = businessOf(consenting)
    const key = keyOf(consenting)
    const before = await store.find(CONSENT, key)
    const allowed = before === undefined ? [] : consentOf(before).scopes
    const scopes = [...new Set([...allowed, ...scope.values])]
    const value: ConsentRecord = { client, subject, business, scopes, at: clock.now() }
    const indexes = { client, subject, ...(business !== null && { business }) }
    return before === undefined
      ? createOf(subject, { kind: CONSENT, key, value, indexes }, store)
      : store.replace(CONSENT, key, before.version, value)
  }

  return {
    async covers(consenting) {
      const allowed = new Set((await find(keyOf(consenting)))?.scopes)
      return consenting.scope.values.every((value) => allowed.has(value))
    },
    async remember(consenting) {
      while (!(await write(consenting)));
    },
    find,
    async listOf(subject) {
      const entries = await store.listBy(CONSENT, 'subject', subject)
      return entries.map(consentOf).sort((a, b) => b.at - a.at)
    },
  }
}

interface ConsentEnding {
  readonly store: Pick<Store, 'listBy' | 'remove'>
  readonly tokenRevoker: TokenRevoker
}

/**
 * Ends a consent, the codes not yet redeemed, the token families and the access tokens that it gave. The consent goes in
 * the middle: were it gone first and the rest failed, nobody could try again; were it gone last, a code made meanwhile
 * would be missed. Resolves with the number of families. Rejects with Fault `identity_unavailable`.
 */
export async function endConsent(
  consent: Pick<Consent, 'key' | 'client' | 'subject' | 'business'>,
  parts: ConsentEnding,
  cause: RevocationCause,
): Promise<number> {
  const before = await endIssued(consent, parts, cause)
  await parts.store.remove(CONSENT, consent.key)
  const after = await endIssued(consent, parts, cause)
  return new Set([...before, ...after]).size
}

/** Resolves with the families that it has ended, or whose codes it has. */
async function endIssued(
  { business, client, subject }: Pick<Consent, 'client' | 'subject' | 'business'>,
  { store, tokenRevoker }: ConsentEnding,
  cause: RevocationCause,
): Promise<readonly string[]> {
  const concerns = (scope: string): boolean => (readGrantedTarget(scope)?.business ?? null) === business
  const entries = await store.listBy(FAMILY, 'subject', subject)
  const kept = entries.filter(({ value }) => {
    const record = value as FamilyRecord
    // Tokens that a customer got by a password belong to no consent.
    return record.client === client && record.grant === 'authorization_code' && concerns(record.scope)
  })
  // Codes last: one that is being redeemed meanwhile has its family named here, or finds its code gone.
  const given = [
    ...kept.map(({ key }) => key),
    ...(await withdrawCodes(store, { client, subject, concerns })),
  ]
  for (const family of new Set(given)) await tokenRevoker.end({ family }, { cause })
  return given
}
