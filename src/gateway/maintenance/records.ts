import {
  type AuditedChange,
  type Operator,
  plainFacts,
  recordGiving,
  recordTaking,
} from '../../base/contracts/records/audited-change.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import type { Change, Feed, StoredValue } from '../../base/contracts/records/store.ts'
import type { JsonObject } from '../../base/http/body/json.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { instantText } from '../../base/kernel/units.ts'
import { compileClosure, type MaintenanceSwitches } from './maintenance.ts'
import {
  type ClosureScope,
  isInForce,
  type MaintenanceSwitch,
  NAMED_KINDS,
  scopeText,
  WHOLE_KINDS,
} from './switch.ts'

export interface KeptSwitch extends MaintenanceSwitch {
  readonly id: string
  /** Switches of the configuration are changed there only. */
  readonly source: 'operator' | 'configuration'
  readonly by?: string | undefined
  readonly reason?: string | undefined
  /** When the switch was set, in milliseconds since the epoch. */
  readonly setAt?: number | undefined
}

interface MaintenanceRecordsParts {
  readonly feed: Feed
  readonly switches: MaintenanceSwitches
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'note'>
  readonly audit: AuditTrail
}

const MAINTENANCE_TOPIC = 'maintenance'

/** What the feed keeps: one change is one decision of an operator, so that nothing is ever half in force. */
interface RecordedChange {
  readonly set?: KeptSwitch
  /** Ids of switches that this ends. */
  readonly ends: readonly string[]
}

/** The maintenance switches (C9.1). Those of operators are on the change feed: in force in every process within a second. */
export class MaintenanceRecords {
  readonly #parts: MaintenanceRecordsParts
  readonly #kept = new Map<string, KeptSwitch>()
  #configured: readonly KeptSwitch[] = []
  /** Since when the configuration has a switch, by its scope. */
  #configuredAt: ReadonlyMap<string, number> = new Map()

  constructor(parts: MaintenanceRecordsParts) {
    this.#parts = parts
    parts.feed.subscribe(MAINTENANCE_TOPIC, {
      apply: (change) => this.#apply(change),
      expire: ({ value }) => this.#expire(value),
      reset: () => this.#reset(),
    })
  }

  /** The time by the clock of its windows, in milliseconds since the epoch. */
  now(): number {
    return this.#parts.clock.now()
  }

  configure(switches: readonly MaintenanceSwitch[]): void {
    this.#configured = switches.map((entry, index) => ({
      ...entry,
      id: `configuration-${index + 1}`,
      source: 'configuration',
    }))
    const [before, now] = [this.#configuredAt, this.now()]
    const scopes = switches.map(({ scope }) => scopeText(scope))
    this.#configuredAt = new Map(scopes.map((scope) => [scope, before.get(scope) ?? now]))
    this.#activate()
  }

  /** Since when something of each kind is closed, milliseconds since the epoch; 0 where nothing is. */
  closedSince(): readonly { readonly kind: ClosureScope['kind']; readonly since: number }[] {
    const now = this.now()
    const closed = this.list().filter((entry) => isInForce(entry, now))
    return [...WHOLE_KINDS, ...NAMED_KINDS].map((kind) => {
      const begun = closed.filter(({ scope }) => scope.kind === kind).map((entry) => this.#begunAt(entry))
      return { kind, since: begun.length === 0 ? 0 : Math.min(...begun) }
    })
  }

  /** A switch of the configuration without a beginning is closed since it was first read. */
  #begunAt({ from = 0, setAt, scope }: KeptSwitch): number {
    return Math.max(from, setAt ?? this.#configuredAt.get(scopeText(scope)) ?? 0)
  }

  /** What is in force and what is planned. */
  list(): readonly KeptSwitch[] {
    const now = this.now()
    return [...this.#configured, ...this.#kept.values()].filter(
      ({ until }) => until === undefined || now < until,
    )
  }

  /**
   * Switches on, now or from a time on. An operator's switch for that scope that is in force ends with it; planned windows
   * stay. In force here when it resolves; rejects with Fault `identity_unavailable` if it could not be kept. A switch that
   * replaces another may let more through than that: then it is recorded before, and rejects with Fault `audit_unavailable`
   * if that fails.
   */
  async set(entry: MaintenanceSwitch, { by, reason, ...operator }: Operator): Promise<KeptSwitch> {
    const now = this.now()
    const set: KeptSwitch = { ...entry, id: newSecret(9), source: 'operator', by, reason, setAt: now }
    const ended = isInForce(entry, now) ? this.#inForceAt(scopeText(entry.scope)) : []
    const change = isInForce(entry, now) ? 'on' : 'planned'
    const record = ended.length > 0 ? recordGiving : recordTaking
    const act = switchedChange(change, [set], ended)
    await record(this.#parts.audit, { by, reason, ...operator }, act, () => this.#decide({ set, ended }))
    this.#note(change, [set], { by, reason, ...operator })
    return set
  }

  /** Rejects with Fault `audit_unavailable` or `identity_unavailable` if it could not be recorded or kept. */
  async end(ended: readonly KeptSwitch[], operator: Operator): Promise<void> {
    if (ended.length === 0) return
    await recordGiving(this.#parts.audit, operator, switchedChange('off', ended), () =>
      this.#decide({ ended }),
    )
    this.#note('off', ended, operator)
  }

  #inForceAt(scope: string): readonly KeptSwitch[] {
    const now = this.now()
    return [...this.#kept.values()].filter(
      (entry) => scopeText(entry.scope) === scope && isInForce(entry, now),
    )
  }

  #decide({ set, ended }: { set?: KeptSwitch; ended: readonly KeptSwitch[] }): Promise<void> {
    const concerned = set === undefined ? ended : [set, ...ended]
    // The end of a switch must be kept as long as the switch itself.
    const last = Math.max(...concerned.map(({ until }) => until ?? Number.POSITIVE_INFINITY))
    const value = { ...(set && { set }), ends: ended.map(({ id }) => id) }
    return this.#parts.feed.append(MAINTENANCE_TOPIC, value, Number.isFinite(last) ? last : undefined)
  }

  #apply({ value, sequence }: Change): void {
    const decision = this.#read(value)
    if (decision === undefined) {
      this.#parts.recorder.note('error', 'maintenance_unknown_switch', { sequence })
      return
    }
    for (const id of decision.ends) this.#kept.delete(id)
    if (decision.set) this.#kept.set(decision.set.id, decision.set)
    this.#activate()
  }

  #reset(): void {
    this.#kept.clear()
    this.#activate()
  }

  #expire(value: StoredValue): void {
    const set = this.#read(value)?.set
    if (set && this.#kept.delete(set.id)) this.#activate()
  }

  /** Undefined if this version does not know such a change. */
  #read(value: StoredValue): RecordedChange | undefined {
    const { set, ends } = value as Partial<RecordedChange>
    if (!Array.isArray(ends)) return undefined
    if (set === undefined) return { ends }
    try {
      compileClosure(set, this.#parts.clock)
      return typeof set.id === 'string' && typeof set.scope.kind === 'string' ? { set, ends } : undefined
    } catch {
      return undefined
    }
  }

  #activate(): void {
    this.#parts.switches.set([...this.#configured, ...this.#kept.values()])
  }

  /** Logs a change: who, when (the line's own time), what, why (C9.3). */
  #note(change: 'on' | 'planned' | 'off', switches: readonly KeptSwitch[], operator: Operator): void {
    for (const { id, scope, from, until, message, addresses, clients } of switches) {
      this.#parts.recorder.note('info', 'maintenance_changed', {
        change,
        scope: scopeText(scope),
        id,
        from: instantText(from),
        until: instantText(until),
        message,
        addresses,
        clients,
        ...operator,
      })
    }
  }
}

/** The most addresses and clients of a switch that a record names. */
const MOST_NAMED = 20

export const switchFacts = ({ id, scope, from, until, message, ...entry }: KeptSwitch): JsonObject =>
  plainFacts({
    id,
    scope: scopeText(scope),
    from: instantText(from),
    until: instantText(until),
    message,
    addresses: entry.addresses?.slice(0, MOST_NAMED),
    clients: entry.clients?.slice(0, MOST_NAMED),
  })

const switchedChange = (
  change: 'on' | 'planned' | 'off',
  switches: readonly KeptSwitch[],
  ended: readonly KeptSwitch[] = [],
): AuditedChange => ({
  event: 'maintenance.switched',
  on: { kind: 'switch', id: switches.map(({ id }) => id).join(' ') },
  change: { change, switches: switches.map(switchFacts), ends: ended.map(({ id }) => id) },
})
