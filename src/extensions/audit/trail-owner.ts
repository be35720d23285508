/** The trail as the process has it that writes it: under the lock of its folder, signed each second (C12.4). */
import type { RecordedWay } from '../../base/contracts/processes/recorded-way.ts'
import { type ServiceAnnouncement, type TrailLock, tryLock } from '../../operate/trail/lock.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'
import type { Condition } from '../../base/kernel/health.ts'
import type { OwnedTrail, OwnedTrailParts } from '../../operate/hooks/kept-trail.ts'
import { type Operator, plainFacts } from '../../base/contracts/records/audited-change.ts'
import type { ErasedEverywhere, RecordedErasure, Redacted } from '../../base/contracts/records/audit-query.ts'
import { isShared, type Store } from '../../base/contracts/records/store.ts'
import type { AuditEntry } from '../../base/contracts/records/audit.ts'
import { after as systemAfter } from '../../base/kernel/clock.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { oneAtATime } from '../../base/kernel/in-turn.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { AbandonedIntents } from './write/abandoned.ts'
import { AuditFolderError, prepareAuditFolder } from './write/folder.ts'
import { beginningKey, placeOfTrail, RememberedBeginning } from './format/beginning.ts'
import { FORMER_FOLDER, formerFolder, readFormerManifest } from './format/former.ts'
import { type AuditKeys, openAuditKeys } from './format/keys.ts'
import { moveFormer } from './write/move-former.ts'
import { ManifestSigner } from './write/signer.ts'
import { digestOfSubject, type MeantSubject } from './read/personal.ts'
import { redactSubject, trailReader } from './read/read-trail.ts'
import { SharedErasures } from './write/shared-erasures.ts'
import { Retention } from './write/retention.ts'
import type { AuditPlan } from './format/schema.ts'
import { conditionOfTrail, readAbandoned, readSigner, readTrail } from './trail-health.ts'
import { openTrail, type WritingTrail } from './write/writing-trail.ts'

/** Milliseconds between two looks for what is old enough to be removed. The first is as long after the start. */
const RETENTION_PERIOD = 3_600_000
/** The shortest time that a command waits for a record, in milliseconds: a slow disk must first make a segment for it. */
const COMMAND_TIMEOUT = 10_000
/**
 * How long a command waits before it takes the disk for one that hangs, in milliseconds: to open a trail takes up to
 * six syncs.
 */
const STANDS = 30_000
/** The time between two attempts to write the announcement of the service, in milliseconds. */
const PERIOD = 1000

/**
 * Opens the trail of a service, or of a command. Rejects with AuditFolderError, KeyError or
 * ManifestError, or with the system's error. Nothing is left open then, and the lock is released.
 */
export async function openTrailOwner(
  plan: AuditPlan,
  group: Configuration['dataGroup'],
  parts: OwnedTrailParts,
): Promise<TrailOwner> {
  const opening = openOwner(plan, group, parts)
  return parts.here === true ? inCommandTime(opening, parts.lock) : opening
}

/**
 * Rejects with AuditFolderError if a command would have to wait too long: where a disk hangs, a sync may never return. The lock ends
 * with the process then, as the work may still go on.
 */
async function inCommandTime<T>(work: Promise<T>, lock: TrailLock): Promise<T> {
  const late = Promise.withResolvers<never>()
  const cancel = systemAfter(STANDS, () => {
    lock.keep()
    late.reject(new AuditFolderError(`the disk of the audit trail has not answered for ${STANDS / 1000} s`))
  })
  try {
    return await Promise.race([work, late.promise])
  } finally {
    cancel()
  }
}

async function openOwner(
  planned: AuditPlan,
  group: Configuration['dataGroup'],
  parts: OwnedTrailParts,
): Promise<TrailOwner> {
  const timeout = Math.max(planned.timeout, parts.here === true ? COMMAND_TIMEOUT : 0)
  const plan = { ...planned, timeout }
  const { folder } = plan
  const opened: { owner?: TrailOwner; signer?: ManifestSigner } = {}
  try {
    // A command has not looked at it yet.
    if (parts.here === true) await prepareAuditFolder(folder, group)
    const keys = await openAuditKeys(folder)
    if (await moveFormer(folder))
      parts.recorder.note('warn', 'audit_trail_moved', { detail: formerFolder(folder) })
    opened.signer = await openSigner(plan, keys, parts, () => opened.owner?.displaced())
    opened.owner = new TrailOwner(plan, keys, parts, opened.signer)
    await opened.owner.begin()
    return opened.owner
  } catch (error) {
    const { owner, signer } = opened
    await (owner === undefined ? signer?.close(true) : owner.close())
    parts.lock.release()
    throw error
  }
}

/** A command that cannot sign does not begin. A service does, and refuses what must be recorded. */
async function openSigner(
  { folder, anchors, durability }: AuditPlan,
  keys: AuditKeys,
  { clock, recorder, after, metrics, here = false }: OwnedTrailParts,
  displaced: () => void,
): Promise<ManifestSigner> {
  const durable = durability === 'disk'
  const anchorFailed = metrics?.anchorFailed
  const parts = { folder, keys, anchors, durable, clock, recorder, after, anchorFailed, displaced }
  const signer = await ManifestSigner.open(parts)
  if (!here || signer.trouble === undefined) return signer
  await signer.close(true)
  throw new AuditFolderError(`the audit trail cannot be signed: ${messageOf(signer.trouble)}`)
}

class TrailOwner implements OwnedTrail {
  readonly remembered: RememberedBeginning
  readonly trail: WritingTrail
  readonly signer: ManifestSigner
  readonly abandoned: AbandonedIntents
  readonly queried: OwnedTrail['queried']
  readonly #plan: AuditPlan
  readonly #parts: OwnedTrailParts
  #lock: TrailLock
  #cancelRetention: (() => void) | undefined
  #cancelTelling: (() => void) | undefined
  #retention: Retention | undefined
  /** Where several nodes share the store. */
  #orders: SharedErasures | undefined
  /** One after the other, files of the trail are removed or replaced. */
  readonly #inTurn = oneAtATime()
  #closed = false
  #service: ServiceAnnouncement | undefined

  constructor(plan: AuditPlan, keys: AuditKeys, parts: OwnedTrailParts, signer: ManifestSigner) {
    this.#plan = plan
    this.#parts = parts
    this.#lock = parts.lock
    this.signer = signer
    this.remembered = new RememberedBeginning(plan.folder, parts.recorder)
    this.abandoned = new AbandonedIntents(parts)
    const reader = trailReader(plan, () => this.remembered.read())
    this.queried = { ...reader, note: (entry) => this.#noteQuestion(entry) }
    this.trail = openTrail(plan, {
      ...parts,
      bodyKey: keys.bodyKey,
      from: signer.end,
      begun: signer.trouble === undefined ? undefined : signer.begun,
      leftOpen: (open) => this.abandoned.add(open),
    })
    signer.follow(() => this.trail.head)
  }

  /** Records what was found, and begins what is done from time to time. */
  async begin(): Promise<void> {
    const { writer, head } = this.signer.end
    if (head.seq === 0) await this.#recordFormer()
    if (this.#parts.here === true) return
    this.abandoned.countBefore({ folder: this.#plan.folder, writer, seq: head.seq })
    this.#keepRetention()
  }

  /** A trail that begins beside that of an earlier version says so, and how that ended. */
  async #recordFormer(): Promise<void> {
    const former = formerFolder(this.#plan.folder)
    if (former === undefined) return
    const manifest = await readFormerManifest(former)
    await this.trail.keep({
      event: 'audit.trail_moved',
      outcome: 'success',
      actor: { kind: 'service' },
      on: { kind: 'trail', id: FORMER_FOLDER },
      ...(manifest && { change: plainFacts({ line: manifest.last.n, hash: manifest.last.hash }) }),
    })
  }

  readings(): readonly GaugeReading[] {
    return [...readTrail(this.trail), ...readSigner(this.signer.state), ...readAbandoned(this.abandoned)]
  }

  condition(): Condition {
    return conditionOfTrail(this.trail, this)
  }

  async compare(store: Store, configuration: Configuration): Promise<void> {
    await this.remembered.compare(store, configuration)
    if (!isShared(configuration.store) || this.#closed) return
    const { clock, recorder, after } = this.#parts
    const trail = beginningKey(placeOfTrail(configuration, this.#plan.folder))
    const redact = (digest: string, recorded: RecordedErasure) => this.#redact({ digest }, recorded)
    this.#orders = new SharedErasures({ store, trail, redact, audit: this.trail, clock, recorder, after })
  }

  take(way: RecordedWay): void {
    this.trail.take(way)
  }

  /** Records a question to the trail. */
  #noteQuestion(entry: AuditEntry): void {
    const { dropped } = this.trail.state
    this.trail.note(entry)
    if (this.trail.state.dropped === dropped) this.abandoned.asked(entry)
  }

  /** Tells commands of this service, as long as it holds the lock. */
  announce(service: ServiceAnnouncement): void {
    this.#service = service
    this.#tell()
  }

  /** Where it cannot be written, such as on a full disk, the service serves nevertheless, and tries again. */
  #tell(): void {
    if (this.#service === undefined) return
    try {
      this.#lock.announce(this.#service)
    } catch {
      this.#cancelTelling = (this.#parts.after ?? systemAfter)(PERIOD, () => this.#tell())
    }
  }

  /** Removes, each hour, what the retention has ended for. */
  #keepRetention(): void {
    const { after = systemAfter } = this.#parts
    this.#cancelRetention = after(RETENTION_PERIOD, () => {
      this.#keepRetention()
      void this.removeOld()
    })
  }

  /** Removes what is old enough, as far as it may. Never rejects. */
  async removeOld(): Promise<void> {
    const { folder, retention: days } = this.#plan
    if (days === undefined || this.#closed) return
    const { trail, signer } = this
    this.#retention ??= new Retention({ ...this.#parts, folder, days, trail, signer })
    const retention = this.#retention
    await this.#inTurn(() => retention.run())
  }

  /** Erases the personal values of a subject (C12.2.3). Rejects as `redactSubject` does. */
  redact(subject: string, recorded: RecordedErasure): Promise<Redacted> {
    return this.#redact({ subject }, recorded)
  }

  #redact(meant: MeantSubject, recorded: RecordedErasure): Promise<Redacted> {
    const { folder } = this.#plan
    const roll = (): Promise<void> => this.trail.roll()
    return this.#inTurn(() => redactSubject({ folder, meant, roll, recorded }))
  }

  /** The order first: after a crash in between this node does it too when it starts. */
  async redactEverywhere(
    subject: string,
    recorded: RecordedErasure,
    operator: Operator,
  ): Promise<ErasedEverywhere> {
    await this.#orders?.give(subject, operator)
    const redacted = await this.redact(subject, recorded)
    return { ...redacted, pending: (await this.#orders?.done(digestOfSubject(subject))) ?? [] }
  }

  /**
   * Closes the trail, signs its end, and releases the lock. What is found behind an end where all was written is nobody's of this
   * service.
   */
  async close(): Promise<void> {
    this.#closed = true
    this.remembered.close()
    this.#orders?.close()
    this.abandoned.close()
    this.#cancelRetention?.()
    this.#cancelTelling?.()
    await this.trail.close()
    const ending = this.signer.close(this.trail.isWhole)
    if (this.#parts.here === true)
      await inCommandTime(ending, this.#lock).catch((cause: unknown) =>
        this.#parts.recorder.note('error', 'audit_manifest_unwritable', { cause }),
      )
    else await ending
    this.#lock.release()
  }

  /**
   * The file of the lock may be gone with the manifest, so that another process could take it: it is taken anew. The old one
   * goes with this process.
   */
  displaced(): void {
    const { metrics, recorder } = this.#parts
    metrics?.fileDisplaced()
    try {
      const lock = tryLock(this.#plan.folder)
      if (lock === undefined) return
      this.#lock = lock
      if (this.#service !== undefined) lock.announce(this.#service)
    } catch (cause) {
      recorder.note('error', 'audit_lock_lost', { cause })
    }
  }
}
