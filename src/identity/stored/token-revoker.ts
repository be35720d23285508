import type { IndexValues, Store } from '../../base/contracts/records/store.ts'
import type { Ended, EndOptions, RevokedTokens, TokenRevoker } from '../../base/contracts/records/tokens.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'
import { CONSENT } from './consents.ts'
import { SESSION } from './sessions.ts'
import type { LogoutNotices } from '../dependencies/logouts.ts'
import { CODE } from './codes.ts'
import { FAMILY, OLDER_TOKEN } from './families.ts'
import { PASSWORD_LINK } from './password-links.ts'

type StoredTokens = Pick<Store, 'find' | 'remove' | 'removeBy' | 'countBy'>

type RecordAction = (kind: string, where: IndexValues) => Promise<number>

/**
 * Makes the revocation rule first, and then removes the records from the store. After a crash in between the rule is in
 * force: every look-up of a session, a code or a family checks the rules (`RevocationRules.hasEnded`), and a rule is kept
 * longer than the records that it ends. Notices to clients (C6.3.3a) are stored before the rule, or a crash would lose them.
 */
export class StoreTokenRevoker implements TokenRevoker {
  readonly #store: StoredTokens
  readonly #rules: Pick<RevocationRules, 'revoke'>
  readonly #logouts: Pick<LogoutNotices, 'endSubject'>

  constructor(
    store: StoredTokens,
    rules: Pick<RevocationRules, 'revoke'>,
    logouts: Pick<LogoutNotices, 'endSubject'>,
  ) {
    this.#store = store
    this.#rules = rules
    this.#logouts = logouts
  }

  async end(tokens: RevokedTokens, options: EndOptions = {}): Promise<Ended> {
    const logins = loginsOf(tokens)
    const forgetParties = logins && (await this.#logouts.endSubject(logins.subject))
    await this.#rules.revoke(tokens, await this.#endOf(tokens), options.cause)
    const ended = await forEachKind(tokens, options, removing(this.#store))
    await forgetParties?.()
    return ended
  }

  /** The numbers that `end` would resolve with; changes nothing. */
  preview(tokens: RevokedTokens, options: EndOptions = {}): Promise<Ended> {
    return forEachKind(tokens, options, counting(this.#store))
  }

  /** When the family would expire, milliseconds since the epoch. The rule is kept until then. */
  async #endOf(tokens: RevokedTokens): Promise<number | undefined> {
    if (!('family' in tokens)) return undefined
    return (await this.#store.find(FAMILY, tokens.family, 'end'))?.expiresAt
  }
}

/** A family is found by its id, which is its key; everything else by its indexes. */
const removing =
  (store: StoredTokens): RecordAction =>
  async (kind, where) => {
    const { family } = where
    if (kind !== FAMILY || family === undefined) return store.removeBy(kind, where)
    return Number(await store.remove(kind, family))
  }

const counting =
  (store: StoredTokens): RecordAction =>
  async (kind, where) => {
    const { family } = where
    if (kind !== FAMILY || family === undefined) return store.countBy(kind, where)
    return Number((await store.find(kind, family, 'end')) !== undefined)
  }

/**
 * Ends all families of refresh tokens of a store, which may be in use: when the secret of successors is replaced. Makes
 * no rule, so access tokens stay. Resolves with the number of families.
 */
export async function endAllFamilies(store: Pick<Store, 'removeBy'>): Promise<number> {
  // Families before their tokens: a token without its family is invalid.
  const ended = await store.removeBy(FAMILY, {})
  await store.removeBy(OLDER_TOKEN, {})
  return ended
}

/** The logins that the rule ends: of one user, or all. Undefined if it ends none. */
function loginsOf(tokens: RevokedTokens): Pick<IndexValues, 'subject'> | undefined {
  if ('before' in tokens) return {}
  return 'subject' in tokens && Object.keys(tokens).length === 1 ? { subject: tokens.subject } : undefined
}

/** Calls `act` for each kind of record that the rule ends: codes before the families that they begin. */
async function forEachKind(
  tokens: RevokedTokens,
  { consents = false, keepsLinks = false }: EndOptions,
  act: RecordAction,
): Promise<Ended> {
  if (endsOnlyTokens(tokens)) return NOTHING
  const logins = loginsOf(tokens)
  const where = logins ?? (tokens as IndexValues)
  const sessions = logins ? await act(SESSION, logins) : 0
  if (logins && !keepsLinks) await act(PASSWORD_LINK, logins)
  const codes = await act(CODE, where)
  // Families before their tokens: a token without its family is invalid.
  const families = await act(FAMILY, where)
  await act(OLDER_TOKEN, where)
  const withdrawn = consents && !('family' in tokens) ? await act(CONSENT, where) : 0
  return { sessions, families, codes, consents: withdrawn }
}

/** A rule with one of these ends access tokens only, which are not stored, or what a foreign issuer has issued. */
const ONLY_OF_TOKENS = ['jti', 'scope', 'role', 'fund', 'issuer'] as const

const endsOnlyTokens = (
  tokens: RevokedTokens & Partial<Record<(typeof ONLY_OF_TOKENS)[number], string>>,
): boolean => ONLY_OF_TOKENS.some((member) => tokens[member] !== undefined)

const NOTHING: Ended = { sessions: 0, families: 0, codes: 0, consents: 0 }
