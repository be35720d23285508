/** Whether the ids of a revocation are known: a mistyped one would end nothing, and report success. */
import type { Store, StoreIndex } from '../contracts/store.ts'
import type { RevokedTokens, RuleGuard } from '../contracts/tokens.ts'
import type { Holdings } from '../directory/holdings.ts'
import { BUSINESS } from '../directory/schema.ts'
import { CLIENT, SUBJECT } from '../directory/stored-directory.ts'
import { CONSENT } from '../identity/browser/consents.ts'
import { SESSION } from '../identity/browser/sessions.ts'
import { CODE } from '../identity/tokens/codes.ts'
import { FAMILY } from '../identity/tokens/families.ts'

export interface RevocableIdParts {
  readonly store: Pick<Store, 'find' | 'countBy'>
  readonly rules: RuleGuard
  readonly holdings: Holdings
}

/** The form of newSecret(16). Access tokens are not stored, so every id of this form counts as known. */
const TOKEN_ID = /^[A-Za-z0-9_-]{22}$/

/** Whether the store holds anything with this value, even of people who were removed. Families have no index `family`. */
async function isHeld(index: StoreIndex, value: string, { store }: RevocableIdParts): Promise<boolean> {
  for (const kind of [FAMILY, CODE, SESSION, CONSENT])
    if ((await store.countBy(kind, { [index]: value })) > 0) return true
  return false
}

type IsKnown = (id: string, parts: RevocableIdParts) => boolean | Promise<boolean>

const IS_KNOWN: Readonly<Record<'jti' | StoreIndex, IsKnown>> = {
  jti: (id) => TOKEN_ID.test(id),
  // A family that a rule has ended is known: ending it again is no mistake.
  family: async (id, parts) =>
    parts.rules.hasEnded({ family: id, subject: '', asOf: parts.rules.asOf, begunAt: 0 }) ||
    (await parts.store.find(FAMILY, id, 'end')) !== undefined ||
    (await isHeld('family', id, parts)),
  subject: async (id, parts) =>
    parts.holdings.users.has(id) ||
    (await parts.store.find(SUBJECT, id)) !== undefined ||
    (await isHeld('subject', id, parts)),
  client: async (id, parts) =>
    parts.holdings.clients.has(id) ||
    (await parts.store.find(CLIENT, id)) !== undefined ||
    (await isHeld('client', id, parts)),
  business: async (id, parts) =>
    parts.holdings.businesses.has(id) ||
    (await parts.store.find(BUSINESS, id)) !== undefined ||
    (await isHeld('business', id, parts)),
}

/**
 * Resolves with a line for each id that is not known. A revocation with a mistyped id would end nothing and report
 * success. Rejects with Fault `identity_unavailable` if the store cannot be read.
 */
export async function unknownIds(tokens: RevokedTokens, parts: RevocableIdParts): Promise<readonly string[]> {
  const unknown: string[] = []
  for (const [name, id] of Object.entries(tokens) as [keyof typeof IS_KNOWN, string][])
    if (!(await IS_KNOWN[name](id, parts)))
      unknown.push(`${name}  is not known: "${id}" — force it if it is right`)
  return unknown
}
