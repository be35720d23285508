/** Tells the audit trail which signing key is announced, signs or is retired (C6.3.4, C12.3): once for each service. */
import type { AuditTrail } from '../contracts/audit.ts'
import type { Store } from '../contracts/store.ts'
import type { AuditEvent } from '../kernel/audit-events.ts'
import { type Clock, epochSeconds } from '../kernel/clock.ts'
import { scheduleKeys, type ScheduledKey } from '../keys/schedule.ts'
import type { KeysPlan } from '../keys/service-keys.ts'
import type { StoredKey } from '../keys/stored-key.ts'

export interface KeyEventsParts {
  readonly plan: KeysPlan
  readonly store: Pick<Store, 'find' | 'create' | 'replace'>
  readonly audit: Pick<AuditTrail, 'note'>
  readonly clock: Clock
}

/** Milliseconds between two readings of the keys. */
const INTERVAL = 1000

/** The kind and key of the one record in the store: what was told of each key, so that a restart tells nothing twice. */
const KIND = 'audited_keys'
const KEY = 'own'

/** The last event of each key, by its id. */
type Told = { readonly [kid: string]: string }

const EVENTS: Readonly<Record<ScheduledKey['state'], AuditEvent | undefined>> = {
  announced: 'keys.announced',
  signing: 'keys.signing',
  // It signs no more, but is published: the key that follows has told so.
  retiring: undefined,
  retired: 'keys.retired',
}

/** Reads the keys as every worker does, but in the supervising process: so each change is told once. */
export class KeyEvents {
  readonly #parts: KeyEventsParts
  readonly #recorded = new Set<string>()
  /** Announced keys that the last look found: told by the next one, unless a command has told of them meanwhile. */
  readonly #found = new Set<string>()
  #keys: readonly StoredKey[] = []
  #told: Told | undefined
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

  /** An operator's command has recorded that it announces these keys (`ES256-2`): they are not told again. */
  skipAnnouncement(name: string): void {
    this.#recorded.add(name)
  }

  /** Tells what has changed since the last look. Never rejects: what cannot be read now is told later. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .catch(() => undefined)
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  async #look(): Promise<void> {
    const { plan, store, clock } = this.#parts
    const { keys, trouble } = await plan.place.read(this.#keys)
    // A place that cannot be read, or a folder that is not mounted, has retired no key.
    if (trouble !== undefined || keys.length === 0) return
    this.#keys = keys
    const before = this.#told ?? (((await store.find(KIND, KEY))?.value ?? {}) as Told)
    const now = this.#tell(scheduleKeys(keys, plan.rotation, epochSeconds(clock)), before)
    if (this.#told === undefined || JSON.stringify(now) !== JSON.stringify(before)) await this.#remember(now)
    this.#told = now
  }

  #tell(schedule: readonly ScheduledKey[], before: Told): Told {
    const now: Record<string, string> = {}
    for (const { key, state } of schedule) {
      const event = EVENTS[state]
      const { name, kid } = key
      if (event === 'keys.announced' && before[kid] === undefined && !this.#found.has(kid)) {
        this.#found.add(kid)
        continue
      }
      now[kid] = event ?? before[kid] ?? 'keys.signing'
      if (event !== undefined && before[kid] !== event) this.#note(event, kid, name)
    }
    for (const kid of Object.keys(before))
      if (now[kid] === undefined && before[kid] !== 'keys.retired') this.#note('keys.retired', kid)
    return now
  }

  #note(event: AuditEvent, kid: string, name?: string): void {
    if (event === 'keys.announced' && name !== undefined && this.#recorded.delete(name)) return
    this.#parts.audit.note({
      event,
      outcome: 'success',
      actor: { kind: 'service', via: 'schedule' },
      on: { kind: 'key', id: name ?? kid },
      change: { kid },
    })
  }

  async #remember(value: Told): Promise<void> {
    const { store } = this.#parts
    const entry = await store.find(KIND, KEY)
    if (entry === undefined) await store.create(KIND, KEY, { value })
    else await store.replace(KIND, KEY, entry.version, value)
  }
}
