import type { IndexValues, Store } from '../../contracts/store.ts'
import type { Ended, TokenRevoker, EndOptions, RevokedTokens, Revoker } from '../../contracts/tokens.ts'
import { CONSENT } from '../browser/consents.ts'
import { SESSION } from '../browser/sessions.ts'
import { CODE } from './codes.ts'
import { FAMILY, REFRESH_TOKEN } from './families.ts'

export interface TokenRevokerParts {
  readonly store: Pick<Store, 'find' | 'removeBy' | 'countBy'>
  readonly revoker: Revoker
}

type RecordAction = (kind: string, where: IndexValues) => Promise<number>

/**
 * Ends things, whoever asks: the rule first, then what the store holds. A crash in between leaves what the rule covers:
 * whoever finds a session, a code or a family asks whether a rule has ended it (RuleGuard), and rules outlive them all.
 */
export class StoreTokenRevoker implements TokenRevoker {
  readonly #parts: TokenRevokerParts

  constructor(parts: TokenRevokerParts) {
    this.#parts = parts
  }

  async end(tokens: RevokedTokens, options: EndOptions = {}): Promise<Ended> {
    const { store, revoker } = this.#parts
    await revoker.revoke(tokens, await this.#endOf(tokens))
    return forEachKind(tokens, options, (kind, where) => store.removeBy(kind, where))
  }

  preview(tokens: RevokedTokens, options: EndOptions = {}): Promise<Ended> {
    return forEachKind(tokens, options, (kind, where) => this.#parts.store.countBy(kind, where))
  }

  endAllFamilies(): Promise<number> {
    return endAllFamilies(this.#parts.store)
  }

  /** When the family would end by itself, milliseconds since the epoch: the rule lasts as long. */
  async #endOf(tokens: RevokedTokens): Promise<number | undefined> {
    if (!('family' in tokens)) return undefined
    return (await this.#parts.store.find(FAMILY, tokens.family))?.expiresAt
  }
}

/** Ends every family of refresh tokens of a store, which may be serving. Answers how many. */
export async function endAllFamilies(store: Pick<Store, 'removeBy'>): Promise<number> {
  // Families before their tokens: without its family a token is worth nothing.
  const ended = await store.removeBy(FAMILY, {})
  await store.removeBy(REFRESH_TOKEN, {})
  return ended
}

/** The sorts of records that a rule ends, in the order in which one gives rise to the next. */
async function forEachKind(
  tokens: RevokedTokens,
  { consents = false }: EndOptions,
  act: RecordAction,
): Promise<Ended> {
  if ('jti' in tokens) return NOTHING
  const where: IndexValues = tokens
  const ofSubject = 'subject' in tokens && Object.keys(where).length === 1
  const sessions = ofSubject ? await act(SESSION, where) : 0
  const codes = await act(CODE, where)
  // Families before their tokens: without its family a token is worth nothing.
  const families = await act(FAMILY, where)
  await act(REFRESH_TOKEN, where)
  const withdrawn = consents && !('family' in tokens) ? await act(CONSENT, where) : 0
  return { sessions, families, codes, consents: withdrawn }
}

const NOTHING: Ended = { sessions: 0, families: 0, codes: 0, consents: 0 }
