/** What operators may ask of the sessions, families and consents in the store. */
import type { RevocableKind, RevocablePage, RevocableRecord, RevocableWhere } from '../contracts/tokens.ts'
import type { Operator } from '../audit/audited-change.ts'

/** Records that one order ends at most: each gets a revocation rule and an audit record of its own. */
export const MOST_ENDED = 1000

/** One by its id, or all that have these values. */
export type Chosen = { readonly id: string } | { readonly where: RevocableWhere }

export type EndOutcome =
  | {
      readonly outcome: 'ended' | 'previewed'
      readonly records: readonly RevocableRecord[]
      /** Families that ended with them. */
      readonly families: number
    }
  | { readonly outcome: 'unknown' }
  /** More than MOST_ENDED match: nothing has changed. */
  | { readonly outcome: 'too many' }

/** Both reject with Fault `identity_unavailable` if the store cannot be reached; a part may be done then. */
export interface RevocableOrders {
  list(
    kind: RevocableKind,
    where: RevocableWhere,
    page: { readonly after: string | undefined; readonly limit: number },
  ): Promise<RevocablePage>
  end(kind: RevocableKind, chosen: Chosen, preview: boolean, operator: Operator): Promise<EndOutcome>
}
