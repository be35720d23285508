/** Whether the ids of a revocation are known: a mistyped one would end nothing, and report success. */
import type { StoreIndex } from '../../base/contracts/records/store.ts'
import type { RevokedTokens } from '../../base/contracts/records/tokens.ts'
import { BUSINESS } from '../../identity/directory/records/schema.ts'
import { CLIENT, SUBJECT } from '../../identity/directory/records/stored-directory.ts'
import { CONSENT } from '../../identity/stored/consents.ts'
import { SESSION } from '../../identity/stored/sessions.ts'
import { CODE } from '../../identity/stored/codes.ts'
import { FAMILY } from '../../identity/stored/families.ts'
import { isSidecar, type IssuerConfig } from '../../identity/keys/issuers/issuers-schema.ts'
import type { ServiceContext } from '../operation/context.ts'

/** The form of newSecret(16). Access tokens are not stored, so every id of this form counts as known. */
const TOKEN_ID = /^[A-Za-z0-9_-]{22}$/

/** Whether the store holds anything with this value, even of people who were removed. Families have no index `family`. */
async function isHeld(index: StoreIndex, value: string, { store }: ServiceContext): Promise<boolean> {
  for (const kind of [FAMILY, CODE, SESSION, CONSENT])
    if ((await store.countBy(kind, { [index]: value })) > 0) return true
  return false
}

type IsKnown = (id: string, service: ServiceContext) => boolean | Promise<boolean>

const IS_KNOWN: Readonly<Record<'jti' | StoreIndex, IsKnown>> = {
  jti: (id) => TOKEN_ID.test(id),
  // A family that a rule has ended is known: ending it again is no mistake.
  family: async (id, service) =>
    service.rules.hasEnded({ family: id, subject: '', asOf: service.rules.asOf, begunAt: 0 }) ||
    (await service.store.find(FAMILY, id, 'end')) !== undefined ||
    (await isHeld('family', id, service)),
  subject: async (id, service) =>
    service.holdings().users.has(id) ||
    (await service.store.find(SUBJECT, id)) !== undefined ||
    (await isHeld('subject', id, service)),
  client: async (id, service) =>
    service.holdings().clients.has(id) ||
    (await service.store.find(CLIENT, id)) !== undefined ||
    (await isHeld('client', id, service)),
  business: async (id, service) =>
    service.holdings().businesses.has(id) ||
    (await service.store.find(BUSINESS, id)) !== undefined ||
    (await isHeld('business', id, service)),
}

/** The ids that only mean something together with their issuer. A business code is this service's own. */
const OF_ISSUER = ['jti', 'subject', 'client'] as const

/** What is wrong with the issuer of a rule in a sidecar (C11.2): ids of several issuers are kept apart. */
function issuerProblems(
  tokens: RevokedTokens,
  issuers: readonly Pick<IssuerConfig, 'issuer'>[],
): readonly string[] {
  const { issuer } = tokens
  if (issuer !== undefined && !issuers.some((config) => config.issuer === issuer))
    return [`issuer  is not configured: "${issuer}" — force it if it is right`]
  const needsIssuer = issuers.length > 1 && OF_ISSUER.some((member) => member in tokens)
  if (issuer !== undefined || !needsIssuer) return []
  return ['issuer  is missing: this would end the id at every issuer — name one, or force it']
}

/**
 * Resolves with a line for each id that is not known. A sidecar has no directory, so every id of its issuers may be revoked.
 * Rejects with Fault `identity_unavailable` if the store cannot be read.
 *
 * @param tokens their `issuer` is an `iss`
 */
export async function unknownIds(tokens: RevokedTokens, service: ServiceContext): Promise<readonly string[]> {
  const configuration = service.configuration()
  const problems = issuerProblems(tokens, configuration.issuers)
  if (isSidecar(configuration) || 'before' in tokens || problems.length > 0) return problems
  const unknown: string[] = []
  for (const [name, id] of Object.entries(tokens) as [keyof typeof IS_KNOWN, string][])
    if (!(await IS_KNOWN[name](id, service)))
      unknown.push(`${name}  is not known: "${id}" — force it if it is right`)
  return unknown
}
