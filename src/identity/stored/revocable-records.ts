/** Sessions, token families and consents of the store, as operators list and end them. */
import { isTargetValue } from '../../base/config/scopes/scope-token.ts'
import type { Entry, Store } from '../../base/contracts/records/store.ts'
import type {
  RevocableKind,
  RevocablePage,
  RevocableRecord,
  RevocableWhere,
  RevocationCause,
  TokenRevoker,
} from '../../base/contracts/records/tokens.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'
import { CONSENT, consentOf, endConsent } from './consents.ts'
import { endStoredSession, isOver, SESSION, type SessionRecord } from './sessions.ts'
import type { LogoutNotices } from '../dependencies/logouts.ts'
import { grantedPlace, readGrantedScope } from '../dependencies/scopes.ts'
import { begunAs, FAMILY, type FamilyRecord, OLDER_TOKEN } from './families.ts'

interface RevocableRecordsParts {
  readonly store: Pick<Store, 'find' | 'listBy' | 'pageBy' | 'lastUseBy' | 'remove'>
  readonly rules: Pick<RevocationRules, 'hasEnded'>
  readonly tokenRevoker: TokenRevoker
  readonly logouts: LogoutNotices
}

interface Kind {
  /** The kind of the store's record. */
  readonly stored: string
  /** Undefined if a rule has ended it. */
  readonly read: (entry: Entry, parts: RevocableRecordsParts) => Promise<RevocableRecord | undefined>
  readonly end: (
    record: RevocableRecord,
    parts: RevocableRecordsParts,
    cause: RevocationCause,
  ) => Promise<number | undefined>
}

function readSession({ key: id, value, expiresAt: endsAt }: Entry, { rules }: RevocableRecordsParts) {
  const record = value as SessionRecord
  const { subject, authTime, browser, lastUsedAt } = record
  const begunAt = authTime * 1000
  return Promise.resolve(
    isOver(record, rules) ? undefined : { id, subject, begunAt, lastUsedAt, endsAt, browser },
  )
}

async function readFamily(
  { key: id, value, expiresAt: endsAt }: Entry,
  { rules, store }: RevocableRecordsParts,
): Promise<RevocableRecord | undefined> {
  const record = value as FamilyRecord
  if (rules.hasEnded(begunAs(id, record))) return undefined
  const { client, subject, scope, authTime, salt } = record
  const granted = readGrantedScope(scope)
  const lastUsedAt =
    salt === undefined ? await store.lastUseBy(OLDER_TOKEN, { family: id }) : record.rotatedAt
  const scopes = granted.values.filter((each) => !isTargetValue(each))
  return {
    id,
    subject,
    client,
    ...grantedPlace(granted),
    scopes,
    begunAt: authTime * 1000,
    lastUsedAt,
    endsAt,
  }
}

function readConsent(entry: Entry): Promise<RevocableRecord> {
  const { key, client, subject, scopes: allowed, at } = consentOf(entry)
  const scopes = allowed.filter((each) => !each.startsWith('target:'))
  const { business, fund } = grantedPlace(readGrantedScope(allowed.join(' ')))
  return Promise.resolve({ id: key, subject, client, business, fund, scopes, begunAt: at })
}

const KINDS: Readonly<Record<RevocableKind, Kind>> = {
  sessions: {
    stored: SESSION,
    read: readSession,
    end: async ({ id }, parts) => {
      const entry = await parts.store.find(SESSION, id, 'end')
      const ended = entry && (await endStoredSession(id, entry.value as SessionRecord, parts))
      return ended === true ? 0 : undefined
    },
  },
  families: {
    stored: FAMILY,
    read: readFamily,
    end: async ({ id: family }, { tokenRevoker }, cause) =>
      (await tokenRevoker.end({ family }, { cause })).families || undefined,
  },
  consents: {
    stored: CONSENT,
    read: readConsent,
    end: async ({ id, client = '', subject, business = null }, parts, cause) =>
      endConsent({ key: id, client, subject, business }, parts, cause),
  },
}

/** All methods reject with Fault `identity_unavailable` if the store cannot be reached. */
export class StoredRevocableRecords {
  readonly #parts: RevocableRecordsParts

  constructor(parts: RevocableRecordsParts) {
    this.#parts = parts
  }

  /** In the order of ids, without records that a revocation rule has ended. */
  async list(
    kind: RevocableKind,
    where: RevocableWhere,
    page: { readonly after: string | undefined; readonly limit: number },
  ): Promise<RevocablePage> {
    const { stored, read } = KINDS[kind]
    const entries = await this.#parts.store.pageBy(stored, where, page)
    const found: RevocableRecord[] = []
    // One after the other: a long page must not fill the queue of the store.
    for (const entry of entries) found.push(...[(await read(entry, this.#parts)) ?? []].flat())
    return { found, next: entries.length < page.limit ? undefined : entries.at(-1)?.key }
  }

  async find(kind: RevocableKind, id: string): Promise<RevocableRecord | undefined> {
    const { stored, read } = KINDS[kind]
    const entry = await this.#parts.store.find(stored, id, 'end')
    return entry && read(entry, this.#parts)
  }

  /** Resolves with the number of families that have ended with it; undefined if it was gone already. */
  end(kind: RevocableKind, record: RevocableRecord, cause: RevocationCause): Promise<number | undefined> {
    return KINDS[kind].end(record, this.#parts, cause)
  }
}
