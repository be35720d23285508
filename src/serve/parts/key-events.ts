/**
 * Records which signing key is announced, signs or is retired (C6.3.4, C12.3): once for each service. "By the schedule" is
 * only where the schedule did it: what an operator did is recorded as theirs.
 */
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import type { AuditEvent } from '../../base/kernel/audit-events.ts'
import { type Clock, epochSeconds } from '../../base/kernel/clock.ts'
import { readRecordedEvents, type RecordedEvents } from '../../identity/keys/signing/recorded-events.ts'
import { scheduleKeys, type ScheduledKey } from '../../identity/keys/signing/schedule.ts'
import type { KeysPlan } from '../../identity/keys/signing/service-keys.ts'
import type { StoredKey } from '../../identity/keys/signing/stored-key.ts'

export interface KeyEventsParts {
  readonly plan: KeysPlan
  readonly store: Pick<Store, 'find' | 'create' | 'replace'>
  readonly audit: Pick<AuditTrail, 'note'>
  readonly clock: Clock
  /** Names of keys (`ES256-2`) whose announcement is in the record of an operator: it is not recorded again. */
  readonly announced: Set<string>
  /** Changes with the keys in the store; undefined: not known. */
  readonly mark?: () => string | undefined
}

/** Milliseconds between two readings of the keys. */
const INTERVAL = 1000

const EVENTS: Readonly<Record<ScheduledKey['state'], AuditEvent | undefined>> = {
  announced: 'keys.announced',
  signing: 'keys.signing',
  // It signs no more, but is published: the event of the key that follows says so.
  retiring: undefined,
  retired: 'keys.retired',
}

interface KeyEvent {
  readonly event: AuditEvent
  readonly kid: string
  readonly name?: string
  /** Whether the schedule did it, and nobody else can have. */
  readonly scheduled: boolean
}

/** What is to be recorded, and the last events when it is. */
interface Next {
  readonly recorded: RecordedEvents
  readonly events: readonly KeyEvent[]
}

const same = (one: RecordedEvents, other: RecordedEvents): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/**
 * Reads the keys as every worker does, but in the supervising process. Each change is recorded once, also where several
 * nodes share the keys: by the node that is the first to write its last events to the store.
 */
export class KeyEvents {
  readonly #parts: KeyEventsParts
  /** Announced keys of the last look: recorded at the next one, unless an operator or another node has done so meanwhile. */
  #found: ReadonlySet<string> = new Set()
  /** The keys of the first look: who made them is not known. */
  #atStart: ReadonlySet<string> | undefined
  #keys: readonly StoredKey[] = []
  /** The mark of the store before the last reading of the keys. */
  #mark: string | undefined
  #recorded: RecordedEvents | undefined
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined

  constructor(parts: KeyEventsParts) {
    this.#parts = parts
  }

  start(): void {
    void this.look()
    this.#timer ??= setInterval(() => void this.look(), INTERVAL).unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  /** Records what has changed since the last look. Never rejects: what cannot be read now is recorded later. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch(() => undefined)
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  async #look(): Promise<void> {
    const { plan, clock, mark } = this.#parts
    const known = mark?.()
    if (known === undefined || known !== this.#mark) {
      const { keys, trouble } = await plan.place.read(this.#keys)
      // A place that cannot be read, or a folder that is not mounted, has retired no key.
      if (trouble !== undefined || keys.length === 0) return
      this.#keys = keys
      this.#mark = known
    }
    const schedule = scheduleKeys(this.#keys, plan.rotation, epochSeconds(clock))
    this.#atStart ??= new Set(schedule.map(({ key }) => key.kid))
    if (this.#recorded === undefined || !same(this.#next(schedule, this.#recorded).recorded, this.#recorded))
      await this.#record(schedule)
    this.#found = new Set(schedule.flatMap(({ key, state }) => (state === 'announced' ? [key.kid] : [])))
  }

  async #record(schedule: readonly ScheduledKey[]): Promise<void> {
    const { events: before, replace } = await readRecordedEvents(this.#parts.store)
    const { recorded, events } = this.#next(schedule, before)
    // Another node has recorded something meanwhile.
    if (!same(recorded, before) && !(await replace(recorded))) return
    this.#recorded = recorded
    for (const event of events) this.#note(event)
  }

  /** Finds what is to be recorded after `before`. */
  #next(schedule: readonly ScheduledKey[], before: RecordedEvents): Next {
    const recorded: Record<string, string> = {}
    const events: Next['events'][number][] = []
    for (const { key, state } of schedule) {
      const { name, kid } = key
      const event = EVENTS[state]
      if (event === 'keys.announced' && before[kid] === undefined && !this.#mayRecord(key)) continue
      recorded[kid] = event ?? before[kid] ?? 'keys.signing'
      if (event !== undefined && before[kid] !== event)
        events.push({ event, kid, name, scheduled: before[kid] !== undefined || this.#isMadeNow(key, event) })
    }
    for (const kid of Object.keys(before))
      if (recorded[kid] === undefined && before[kid] !== 'keys.retired')
        events.push({ event: 'keys.retired', kid, scheduled: false })
    return { recorded, events }
  }

  /** The node whose operator announced a key knows that at once; the others wait for it to record it. */
  #mayRecord({ kid, name }: StoredKey): boolean {
    return this.#found.has(kid) || this.#parts.announced.has(name)
  }

  /** Whether the schedule has made a key while this service ran. One that signs at once replaces others: a command does that. */
  #isMadeNow({ kid }: StoredKey, event: AuditEvent): boolean {
    return (
      event === 'keys.announced' && this.#parts.plan.rotation.automatic && this.#atStart?.has(kid) === false
    )
  }

  #note({ event, kid, name, scheduled }: KeyEvent): void {
    if (event === 'keys.announced' && name !== undefined && this.#parts.announced.delete(name)) return
    this.#parts.audit.note({
      event,
      outcome: 'success',
      actor: { kind: 'service', ...(scheduled && { via: 'schedule' as const }) },
      on: { kind: 'key', id: name ?? kid },
      change: { kid },
    })
  }
}
