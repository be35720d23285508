/**
 * Intents of operations that give a secret which is shown before it is in force (C12.1.7): recorded before anybody sees it,
 * and closed in every case.
 */
import {
  beginGiving,
  type BegunGiving,
  type AuditedChange,
  type Operator,
} from '../../base/contracts/records/audited-change.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import { type After, after as systemAfter } from '../../base/kernel/clock.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { AdminError } from './errors.ts'

/** How long an intent stays open while nobody orders what it announces, in milliseconds. */
const OPEN_FOR = 60_000
const ID_BYTES = 16

interface OpenIntent {
  readonly giving: BegunGiving
  /** What it announces, and for whom: another order cannot use it. */
  readonly about: string
  readonly forget: () => void
}

const aboutOf = ({ event, on }: AuditedChange, { operator }: Operator): string =>
  JSON.stringify([event, on, operator])

export class OpenIntents {
  readonly #audit: AuditTrail
  readonly #after: After
  readonly #open = new Map<string, OpenIntent>()

  constructor(audit: AuditTrail, after: After = systemAfter) {
    this.#audit = audit
    this.#after = after
  }

  /** Records that something is about to be done. Returns the name of the intent. Rejects with Fault `audit_unavailable`. */
  async begin(change: AuditedChange, operator: Operator): Promise<string> {
    const giving = await beginGiving(this.#audit, operator, change)
    const id = newSecret(ID_BYTES)
    const forget = this.#after(OPEN_FOR, () => void this.withdraw(id))
    this.#open.set(id, { giving, about: aboutOf(change, operator), forget })
    return id
  }

  /** Takes the intent of the change that is done now. Throws AdminError 409 if it is closed, or announces something else. */
  take(id: string, change: AuditedChange, operator: Operator): BegunGiving {
    const intent = this.#open.get(id)
    if (intent?.about !== aboutOf(change, operator))
      throw new AdminError(409, 'nothing was changed', [
        'query.intent  is closed, or announces something else: order a preview again',
      ])
    this.#open.delete(id)
    intent.forget()
    return intent.giving
  }

  /** Closes the intent of a change that is not done. Never rejects. */
  async withdraw(id: string): Promise<void> {
    const intent = this.#open.get(id)
    if (intent === undefined) return
    this.#open.delete(id)
    intent.forget()
    await intent.giving.fail()
  }

  /** Closes all intents. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((id) => this.withdraw(id)))
  }
}
