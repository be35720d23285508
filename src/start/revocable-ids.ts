/** Which ids a revocation may name without being forced: a mistyped one would end nothing, and say that it did. */
import type { RevokedTokens, RuleGuard } from '../contracts/tokens.ts'
import type { Store, StoreIndex } from '../contracts/store.ts'
import type { Holdings } from '../directory/holdings.ts'
import { CLIENT, SUBJECT } from '../directory/stored-records.ts'
import { CONSENT } from '../identity/browser/consents.ts'
import { SESSION } from '../identity/browser/sessions.ts'
import { CODE } from '../identity/tokens/codes.ts'
import { FAMILY } from '../identity/tokens/families.ts'

export interface KnownParts {
  readonly store: Pick<Store, 'find' | 'countBy'>
  readonly rules: RuleGuard
  readonly holdings: Holdings
}

/** What newSecret(16) makes. Access tokens are not kept, so an id of this form may be one, and any other is none. */
const TOKEN_ID = /^[A-Za-z0-9_-]{22}$/

/** Whether the store holds anything under it: also of somebody who was removed. */
async function isHeld(index: StoreIndex, value: string, { store }: KnownParts): Promise<boolean> {
  for (const kind of [FAMILY, CODE, SESSION, CONSENT])
    if ((await store.countBy(kind, { [index]: value })) > 0) return true
  return false
}

type Known = (id: string, parts: KnownParts) => boolean | Promise<boolean>

const KNOWN: Readonly<Record<'jti' | StoreIndex, Known>> = {
  jti: (id) => TOKEN_ID.test(id),
  // One that was ended by a rule is known: ending it again is no mistake.
  family: async (id, parts) =>
    parts.rules.hasEnded({ family: id, subject: '', asOf: parts.rules.asOf, begunAt: 0 }) ||
    (await isHeld('family', id, parts)),
  subject: async (id, parts) =>
    parts.holdings.users.has(id) ||
    (await parts.store.find(SUBJECT, id)) !== undefined ||
    (await isHeld('subject', id, parts)),
  client: async (id, parts) =>
    parts.holdings.clients.has(id) ||
    (await parts.store.find(CLIENT, id)) !== undefined ||
    (await isHeld('client', id, parts)),
  business: async (id, parts) => parts.holdings.businesses.has(id) || (await isHeld('business', id, parts)),
}

/** A line for each id that nobody knows. Rejects with Fault `identity_unavailable`. */
export async function unknownIds(tokens: RevokedTokens, parts: KnownParts): Promise<readonly string[]> {
  const unknown: string[] = []
  for (const [name, id] of Object.entries(tokens) as [keyof typeof KNOWN, string][])
    if (!(await KNOWN[name](id, parts)))
      unknown.push(`${name}  is not known: "${id}" — force it if it is right`)
  return unknown
}
