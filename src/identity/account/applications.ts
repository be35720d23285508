import type { Exchange } from '../../base/contracts/calls/exchange.ts'
import { describeScope } from '../authorize/show.ts'
import { noteCall, orUnavailable } from '../dependencies/dependencies.ts'
import { applicationsSection, type ConsentListed } from '../pages/account.ts'
import type { Login } from '../steps/browser-context.ts'
import type { StepDependencies } from '../steps/endpoint.ts'
import { consentWithdrawn, took } from '../steps/records.ts'
import { type Consent, endConsent } from '../stored/consents.ts'
import type { AccountPart } from './part.ts'

async function withdrawConsent(
  key: string,
  { user }: Login,
  exchange: Exchange,
  dependencies: StepDependencies,
): Promise<void> {
  const consent = await dependencies.consents.find(key)
  // A consent of another user counts as one that does not exist.
  if (consent?.subject !== user.subject) return
  const families = await endConsent(consent, dependencies, { via: 'withdrawn by the user' })
  await took(consentWithdrawn(exchange, consent, families), dependencies)
  const { business, client, subject } = consent
  noteCall(exchange, dependencies, 'info', 'consent_withdrawn', { client, subject, business })
}

async function listConsent(consent: Consent, dependencies: StepDependencies): Promise<ConsentListed> {
  const name = await orUnavailable(dependencies.people.findClientName(consent.client))
  const { about, data, lasting } = describeScope(consent.scopes, dependencies)
  const { at, business, key } = consent
  const found = await dependencies.places.findBusinesses(business === null ? [] : [business])
  return {
    key,
    client: name ?? consent.client,
    business: business === null ? undefined : (found.get(business)?.name ?? business),
    scopes: [...about, ...data.map(({ text }) => text)],
    lasting,
    at,
  }
}

/** The applications that the person has allowed something (C6.2.2). */
export const applications: AccountPart = {
  fields: ['withdraw'],
  async show({ form, login: { user } }, dependencies) {
    const consents = await dependencies.consents.listOf(user.subject)
    const listed = await Promise.all(consents.map((consent) => listConsent(consent, dependencies)))
    return applicationsSection(listed, form, dependencies.theme.timeZone)
  },
  async act({ context: { exchange }, login, params }, dependencies) {
    await withdrawConsent(params.get('withdraw') ?? '', login, exchange, dependencies)
    return { done: 'withdrawn' }
  },
}
