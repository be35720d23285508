/** Ends sessions, families and consents as operators order it, and records each (C11.5.2). */
import {
  type AuditedChange,
  causeOf,
  type Operator,
  plainFacts,
  recordTaking,
} from '../audit/audited-change.ts'
import type { AuditTrail } from '../contracts/audit.ts'
import type { Recorder } from '../contracts/recorder.ts'
import type { RevocableKind, RevocablePage, RevocableRecord, RevocableWhere } from '../contracts/tokens.ts'
import type { StoredRevocableRecords } from '../identity/revocable-records.ts'
import {
  type Chosen,
  type EndOutcome,
  MOST_ENDED,
  type RevocableOrders,
} from '../operator/revocable-orders.ts'

export interface RevocableControlParts {
  readonly records: StoredRevocableRecords
  readonly audit: AuditTrail
  readonly recorder: Pick<Recorder, 'note'>
}

/** What the record of an end is about. The events are those of the user's own page, and of `revoke`. */
const ACTS: Readonly<Record<RevocableKind, (record: RevocableRecord) => AuditedChange>> = {
  sessions: ({ id, subject }) => ({ event: 'session.revoked', on: { kind: 'session', id, subject } }),
  families: ({ id: family, subject, client, business }) => ({
    event: 'revocation.ordered',
    on: { kind: 'tokens', family, subject, client, business },
  }),
  consents: ({ subject, client, business, scopes }) => ({
    event: 'consent.withdrawn',
    on: { kind: 'consent', subject, client, business },
    change: plainFacts({ scopes }),
  }),
}

export class RevocableControl implements RevocableOrders {
  readonly #parts: RevocableControlParts

  constructor(parts: RevocableControlParts) {
    this.#parts = parts
  }

  list(
    kind: RevocableKind,
    where: RevocableWhere,
    page: { readonly after: string | undefined; readonly limit: number },
  ): Promise<RevocablePage> {
    return this.#parts.records.list(kind, where, page)
  }

  async end(kind: RevocableKind, chosen: Chosen, preview: boolean, operator: Operator): Promise<EndOutcome> {
    const records = await this.#choose(kind, chosen)
    if (records === undefined) return { outcome: 'unknown' }
    if (records.length > MOST_ENDED) return { outcome: 'too many' }
    if (preview) return { outcome: 'previewed', records, families: 0 }
    let families = 0
    for (const record of records) families += await this.#endOne(kind, record, operator)
    this.#parts.recorder.note('info', `${kind}_ended`, { count: records.length, families, ...operator })
    return { outcome: 'ended', records, families }
  }

  /** Undefined if there is none of this id. One more than MOST_ENDED at most. */
  async #choose(kind: RevocableKind, chosen: Chosen): Promise<readonly RevocableRecord[] | undefined> {
    const { records } = this.#parts
    if ('id' in chosen) {
      const record = await records.find(kind, chosen.id)
      return record && [record]
    }
    const found: RevocableRecord[] = []
    let after: string | undefined
    do {
      const page = await records.list(kind, chosen.where, { after, limit: MOST_ENDED + 1 - found.length })
      found.push(...page.found)
      after = page.next
    } while (after !== undefined && found.length <= MOST_ENDED)
    return found
  }

  /** Resolves with the number of families that ended. */
  #endOne(kind: RevocableKind, record: RevocableRecord, operator: Operator): Promise<number> {
    const { audit, records } = this.#parts
    const end = async (): Promise<number> => (await records.end(kind, record, causeOf(operator))) ?? 0
    const withFamilies = (families: number) => (kind === 'sessions' ? {} : { families })
    return recordTaking(audit, operator, ACTS[kind](record), end, withFamilies)
  }
}
