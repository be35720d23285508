/**
 * The work with the audit trail that only one process of a service does: it holds the lock and signs the heads of all
 * writers.
 */
import { AbandonedIntents } from '../../state/audit/write/abandoned.ts'
import { announceAside, type AnnouncedWriter } from '../../state/audit/format/announcement.ts'
import { RememberedBeginning } from '../../state/audit/format/beginning.ts'
import { type AuditKeys, openAuditKeys } from '../../state/audit/format/keys.ts'
import { type ServiceAnnouncement, type TrailLock, tryLock } from '../../state/audit/write/lock.ts'
import type { SignedHead } from '../../state/audit/format/manifest.ts'
import { ManifestSigner, type SignerParts } from '../../state/audit/write/signer.ts'
import { type Redacted, type RedactionParts, redactSubject } from '../../state/audit/read/read-trail.ts'
import { Retention } from '../../state/audit/write/retention.ts'
import { type AuditPlan, planAudit } from '../../state/audit/format/schema.ts'
import {
  AuditFolderError,
  newWriterName,
  type OpenTrail,
  openTrail,
  prepareAuditFolder,
  type TrailParts,
  writerStamp,
} from '../../state/audit/write/trail.ts'
import { after as systemAfter } from '../../base/kernel/clock.ts'
import { oneAtATime } from '../../base/kernel/in-turn.ts'
import type { WorkerMessages } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'

type TrailOwnerParts = Omit<TrailParts, 'bodyKey' | 'announced'> &
  Pick<SignerParts, 'anchorFailed' | 'linger'> & {
    /** The lock of the folder, if this process has it already. It is released with the owner. */
    readonly lock?: TrailLock
  }

/** Milliseconds between two looks for what is old enough to be removed. The first is as long after the start. */
const RETENTION_PERIOD = 3_600_000
/** How long a process whose supervisor was killed may need to end, besides the time of the calls in flight, in milliseconds. */
const LINGER_SLACK = 15_000
/** Milliseconds that a command waits for a record at least: it begins a part of the trail for that, on a disk that may be slow. */
const COMMAND_TIMEOUT = 10_000
/**
 * How long a command waits before it takes the disk for one that hangs, in milliseconds: to open a trail takes up to
 * six syncs.
 */
const STANDS = 30_000
/** Milliseconds between two attempts to take the lock, and between two times that a worker tells its head. */
const PERIOD = 1000

/**
 * Opens the trail of a service; undefined if none is kept. Rejects with AuditFolderError, KeyError or ManifestError,
 * or with the system's error. Nothing is left open then.
 */
export async function openTrailOwner(
  configuration: Configuration,
  parts: TrailOwnerParts,
): Promise<TrailOwner | undefined> {
  const opening = openOwner(configuration, parts)
  return parts.here === true ? inCommandTime(opening) : opening
}

/** Rejects with AuditFolderError if a command would have to wait too long: where a disk hangs, a sync may never return. */
async function inCommandTime<T>(work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>()
  const cancel = systemAfter(STANDS, () =>
    late.reject(new AuditFolderError(`the disk of the audit trail has not answered for ${STANDS / 1000} s`)),
  )
  try {
    return await Promise.race([work, late.promise])
  } finally {
    cancel()
  }
}

async function openOwner(
  configuration: Configuration,
  parts: TrailOwnerParts,
): Promise<TrailOwner | undefined> {
  const planned = planAudit(configuration)
  if (planned === undefined) return undefined
  const timeout = Math.max(planned.timeout, parts.here === true ? COMMAND_TIMEOUT : 0)
  const plan = { ...planned, timeout }
  await prepareAuditFolder(plan.folder, configuration.dataGroup)
  const keys = await openAuditKeys(plan.folder)
  const { drain } = configuration.server.timeouts
  const trailOwner = new TrailOwner(plan, keys, { linger: drain + LINGER_SLACK, ...parts })
  try {
    await trailOwner.open()
    return trailOwner
  } catch (error) {
    await trailOwner.close()
    throw error
  }
}

export class TrailOwner {
  readonly remembered: RememberedBeginning
  readonly #plan: AuditPlan
  readonly #keys: AuditKeys
  readonly #parts: TrailOwnerParts
  #trail: OpenTrail | undefined
  #lock: TrailLock | undefined
  #signer: ManifestSigner | undefined
  #abandoned: AbandonedIntents | undefined
  /** Writers that began before this process have names that come before it. */
  readonly #stamp: string
  /** The heads that workers reported before this process could sign. */
  readonly #heads = new Map<string, SignedHead>()
  readonly #endedBefore: string[] = []
  /** The writers of the worker processes that live. */
  readonly #workers = new Set<string>()
  #cancel: (() => void) | undefined
  #cancelRetention: (() => void) | undefined
  #cancelTelling: (() => void) | undefined
  #retention: Retention | undefined
  /** One after the other, files of the trail are removed or replaced. */
  readonly #inTurn = oneAtATime()
  #closed = false
  #service: ServiceAnnouncement | undefined

  constructor(plan: AuditPlan, keys: AuditKeys, parts: TrailOwnerParts) {
    this.#plan = plan
    this.#keys = keys
    this.#parts = parts
    this.#lock = parts.lock
    this.remembered = new RememberedBeginning(plan.folder, parts.recorder)
    this.#stamp = writerStamp(parts.clock.now())
  }

  /** The trail of this process. Absent until it is open. */
  get trail(): OpenTrail | undefined {
    return this.#trail
  }

  /** Absent while another process holds the lock. */
  get signer(): ManifestSigner | undefined {
    return this.#signer
  }

  /** Absent as the signer is. */
  get abandoned(): AbandonedIntents | undefined {
    return this.#abandoned
  }

  /** Absent as the signer is. */
  get lock(): TrailLock | undefined {
    return this.#lock
  }

  /** Signs before this process writes: what lies behind the last signed head then was left behind by others. */
  async open(): Promise<void> {
    if (!(await this.#takeOver())) this.#waitForLock()
    const announced = await this.#announced()
    this.#trail = openTrail(this.#plan, { ...this.#parts, bodyKey: this.#keys.bodyKey, announced })
    this.#keepRetention()
  }

  /** Announces this process: in the manifest, or aside while that is another process's, or cannot be written. */
  async #announced(): Promise<AnnouncedWriter> {
    const { clock } = this.#parts
    const writer = newWriterName(clock.now())
    const aside = (): AnnouncedWriter =>
      announceAside(writer, new Date(clock.now()).toISOString(), this.#keys)
    return (await this.#signer?.announce(writer).catch(aside)) ?? aside()
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
      this.#lock?.announce(this.#service)
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
    const [trail, signer] = [this.#trail, this.#signer]
    if (days === undefined || trail === undefined || signer === undefined || this.#closed) return
    this.#retention ??= new Retention({ ...this.#parts, folder, days, trail, signer })
    const retention = this.#retention
    await this.#inTurn(() => retention.run())
  }

  /**
   * Erases the personal values of a subject (C12.2.3). Undefined if another process signs the trail: it may write to its
   * files. Rejects as `redactSubject` does.
   *
   * @param rollWorkers ends the segments of the worker processes
   */
  async redact(
    subject: string,
    rollWorkers: () => Promise<void>,
    recorded: RedactionParts['recorded'],
  ): Promise<Redacted | undefined> {
    const trail = this.#trail
    if (trail === undefined || this.#signer === undefined || this.#closed) return undefined
    const roll = async (): Promise<void> => {
      await Promise.all([trail.roll(), rollWorkers()])
    }
    const { folder } = this.#plan
    return this.#inTurn(() => redactSubject({ folder, subject, roll, recorded }))
  }

  /** A worker tells its last durable record. */
  report(head: SignedHead): void {
    this.#workers.add(head.writer)
    if (head.seq === 0) return
    if (this.#signer === undefined) this.#heads.set(head.writer, head)
    else this.#signer.report(head)
  }

  /** A worker has ended. */
  ended(writer: string): void {
    this.#workers.delete(writer)
    this.#signer?.ended(writer)
    if (this.#abandoned === undefined) this.#endedBefore.push(writer)
    else void this.#abandoned.ended([writer])
  }

  /** Closes the trail, signs its end, and releases the lock. */
  async close(): Promise<void> {
    this.#closed = true
    this.remembered.close()
    this.#cancel?.()
    this.#cancelRetention?.()
    this.#cancelTelling?.()
    await this.#trail?.close()
    const ending = this.#signer?.close()
    if (this.#parts.here === true)
      await inCommandTime(Promise.resolve(ending)).catch((cause: unknown) =>
        this.#parts.recorder.note('error', 'audit_manifest_unwritable', { cause }),
      )
    else await ending
    await this.#abandoned?.close()
    this.#lock?.release()
    this.#lock = undefined
  }

  /** Whether this process signs from now on. */
  async #takeOver(): Promise<boolean> {
    const { folder, durability, anchors } = this.#plan
    this.#lock ??= tryLock(folder)
    if (this.#lock === undefined) return false
    this.#tell()
    const abandoned = (this.#abandoned ??= await AbandonedIntents.open(folder, this.#parts))
    this.#signer = await ManifestSigner.open({
      ...this.#parts,
      leftBehind: (writers) => abandoned.ended(this.#gone(writers)),
      folder,
      keys: this.#keys,
      anchors,
      durable: durability === 'disk',
      displaced: () => this.#displaced(),
      linger: this.#parts.linger,
      isOurs: (writer) => writer === this.#trail?.writer || this.#workers.has(writer),
      own: () => this.#trail && { writer: this.#trail.writer, ...this.#trail.head },
    })
    for (const head of this.#heads.values()) this.#signer.report(head)
    this.#heads.clear()
    return true
  }

  /**
   * The file of the lock may be gone with the manifest, so that another process could take it: it is taken anew. The old one
   * goes with this process.
   */
  #displaced(): void {
    const { meter, recorder } = this.#parts
    meter?.fileDisplaced()
    try {
      const lock = tryLock(this.#plan.folder)
      if (lock === undefined) return
      this.#lock = lock
      if (this.#service !== undefined) lock.announce(this.#service)
    } catch (cause) {
      recorder.note('error', 'audit_lock_lost', { cause })
    }
  }

  /** The writers that have ended: those that began with this process or after it are reported. */
  #gone(writers: readonly string[]): readonly string[] {
    const before = this.#trail === undefined ? writers : writers.filter((writer) => writer < this.#stamp)
    return [...before, ...this.#endedBefore.splice(0)]
  }

  /** In a replacement of a service the new one starts before the old one has ended: it signs when that is gone. */
  #waitForLock(): void {
    this.#parts.recorder.note('warn', 'audit_unsigned', {
      detail: `another process signs the trail in ${this.#plan.folder}; this one waits for its end`,
    })
    this.#retry()
  }

  #retry(): void {
    this.#cancel = (this.#parts.after ?? systemAfter)(PERIOD, () => void this.#tryAgain())
  }

  async #tryAgain(): Promise<void> {
    try {
      if (!(await this.#takeOver())) this.#retry()
      // It was closed meanwhile.
      else if (this.#closed) await this.close()
    } catch (cause) {
      this.#parts.recorder.note('error', 'audit_manifest_unwritable', { cause })
      if (!this.#closed) this.#retry()
    }
  }
}

/** Tells the heads of a worker's trail to its supervisor. Call what it returns to close the trail. */
export function tellHeads(trail: OpenTrail, reports: WorkerMessages): () => Promise<void> {
  let reported = -1
  const tell = (): void => {
    const { seq, hash } = trail.head
    if (seq === reported) return
    reported = seq
    reports.trailHead({ writer: trail.writer, seq, hash })
  }
  // A process that dies within its first second has reported its name, so that its end is looked for.
  tell()
  const timer = setInterval(tell, PERIOD).unref()
  return async () => {
    clearInterval(timer)
    await trail.close()
    tell()
  }
}
