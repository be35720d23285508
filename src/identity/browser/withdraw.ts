import { noteCall } from '../dependencies.ts'
import type { Exchange } from '../../contracts/exchange.ts'
import type { StepDependencies } from '../endpoint.ts'
import { readGrantedScope } from '../scopes.ts'
import { FAMILY, type FamilyRecord } from '../tokens/families.ts'
import type { Consent } from './consents.ts'

/**
 * Takes a consent back (C6.2.2) with all that it gave: codes not yet redeemed, token families, access tokens. The
 * consent goes in the middle: were it gone first and the rest failed, there would be no button to try again with;
 * were it gone last, a code made meanwhile would be missed.
 */
export async function withdrawConsent(
  consent: Consent,
  exchange: Exchange,
  dependencies: StepDependencies,
): Promise<void> {
  await endGiven(consent, dependencies)
  await dependencies.consents.remove(consent.key)
  await endGiven(consent, dependencies)
  const { business, client, subject } = consent
  noteCall(exchange, dependencies, 'info', 'consent_withdrawn', { client, subject, business })
}

async function endGiven(
  { business, client, subject }: Consent,
  dependencies: StepDependencies,
): Promise<void> {
  const { codes, tokenRevoker, store } = dependencies
  const concerns = (scope: string): boolean => (readGrantedScope(scope).target?.business ?? null) === business
  const entries = await store.listBy(FAMILY, 'subject', subject)
  const kept = entries.filter(({ value }) => {
    const record = value as FamilyRecord
    // What a customer's password gave was no matter of consent.
    return record.client === client && record.grant === 'authorization_code' && concerns(record.scope)
  })
  // Codes last: one that is being redeemed meanwhile has its family named here, or fails to settle.
  const given = [...kept.map(({ key }) => key), ...(await codes.withdraw({ client, subject, concerns }))]
  for (const family of new Set(given)) await tokenRevoker.end({ family })
}
