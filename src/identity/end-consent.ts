/** Takes a consent back, with all that it gave (C6.2.2): for its user, and for operators. */
import type { Store } from '../contracts/store.ts'
import type { RevocationCause, TokenRevoker } from '../contracts/tokens.ts'
import { type Consent, CONSENT } from './browser/consents.ts'
import { readGrantedTarget } from './scopes.ts'
import { withdrawCodes } from './tokens/codes.ts'
import { FAMILY, type FamilyRecord } from './tokens/families.ts'

export interface ConsentEnding {
  readonly store: Pick<Store, 'listBy' | 'remove'>
  readonly tokenRevoker: Pick<TokenRevoker, 'end'>
}

/**
 * Ends a consent, the codes not yet redeemed, the token families and the access tokens that it gave. The consent goes in
 * the middle: were it gone first and the rest failed, nobody could try again; were it gone last, a code made meanwhile
 * would be missed. Resolves with the number of families. Rejects with Fault `identity_unavailable`.
 */
export async function endConsent(
  consent: Pick<Consent, 'key' | 'client' | 'subject' | 'business'>,
  parts: ConsentEnding,
  order: RevocationCause,
): Promise<number> {
  const before = await endIssued(consent, parts, order)
  await parts.store.remove(CONSENT, consent.key)
  const after = await endIssued(consent, parts, order)
  return new Set([...before, ...after]).size
}

/** Resolves with the families that it has ended, or whose codes it has. */
async function endIssued(
  { business, client, subject }: Pick<Consent, 'client' | 'subject' | 'business'>,
  { store, tokenRevoker }: ConsentEnding,
  order: RevocationCause,
): Promise<readonly string[]> {
  const concerns = (scope: string): boolean => (readGrantedTarget(scope)?.business ?? null) === business
  const entries = await store.listBy(FAMILY, 'subject', subject)
  const kept = entries.filter(({ value }) => {
    const record = value as FamilyRecord
    // What a customer's password gave was no matter of consent.
    return record.client === client && record.grant === 'authorization_code' && concerns(record.scope)
  })
  // Codes last: one that is being redeemed meanwhile has its family named here, or finds its code gone.
  const given = [
    ...kept.map(({ key }) => key),
    ...(await withdrawCodes(store, { client, subject, concerns })),
  ]
  for (const family of new Set(given)) await tokenRevoker.end({ family }, { order })
  return given
}
