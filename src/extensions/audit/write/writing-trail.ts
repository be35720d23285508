/** The trail of the process that writes it: its own records, and those of its workers, in one chain (C12.4). */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RecordedWay } from '../../../base/contracts/processes/recorded-way.ts'
import type { AuditEntry } from '../../../base/contracts/records/audit.ts'
import { after as systemAfter } from '../../../base/kernel/clock.ts'
import { newSecret } from '../../../base/kernel/ids.ts'
import type { ChainHead } from '../format/record.ts'
import type { AuditPlan } from '../format/schema.ts'
import type { AuditThreadMessage } from './audit-thread.ts'
import { RecordRing } from '../queue/record-ring.ts'
import { TakenRecords } from '../queue/taken-records.ts'
import { WriterThread } from './thread.ts'
import { late, MOST_FOR_KEPT, OpenTrail, type TrailParts } from './trail.ts'
import type { Waiting } from '../queue/waiting.ts'
import { WriterHere } from './writer-here.ts'

export interface WritingParts extends Omit<TrailParts, 'timeout'> {
  /** Bytes of lines after which another segment begins. */
  readonly segmentBytes?: number | undefined
  /** The name of this node, where several share a store. */
  readonly node?: string | undefined
  /** Whether this thread writes, as that of a command does, which serves nobody. */
  readonly here?: boolean | undefined
  /** Where the chain goes on. Absent where another one begins. */
  readonly from?: TrailEnd | undefined
  /** Resolves when records may be written. Absent where they may at once. */
  readonly begun?: Promise<void> | undefined
  /** Called with the number of intents that a worker has left open. */
  readonly leftOpen?: ((open: number) => void) | undefined
}

/** The end of a trail. */
export interface TrailEnd {
  /** The name of the trail. */
  readonly writer: string
  readonly head: ChainHead
  /** The number of its last segment; 0 where it has none. */
  readonly number: number
}

/** The parts of a plan that concern writing. */
type WritingPlan = Pick<AuditPlan, 'folder' | 'durability' | 'timeout'>

const CLOSED: AuditEntry = { event: 'writer.closed', outcome: 'success', actor: { kind: 'service' } }
/** Turns of the event loop without a record of a worker after which all that they have sent is here. */
const QUIET_TURNS = 3
const SEGMENT_BYTES = 64 * 1024 ** 2
const BEGINNING: ChainHead = { seq: 0, hash: '' }

/** The name of a trail: when it began, and what distinguishes it from others of that second. */
export const newWriterName = (time: number): string =>
  `${new Date(time).toISOString().replaceAll(/[-:]|\.\d+/g, '')}-${newSecret(6)}`

/** Opens the trail in a folder that was prepared (`prepareAuditFolder`), and whose lock the caller holds. */
export function openTrail({ folder, durability, timeout }: WritingPlan, parts: WritingParts): WritingTrail {
  const { clock, after, segmentBytes = SEGMENT_BYTES, node, from } = parts
  const { writer, head, number } = from ?? { writer: newWriterName(clock.now()), head: BEGINNING, number: 0 }
  const ring = new RecordRing(undefined, head)
  const plan = { folder, writer, lastSegment: number, durable: durability === 'disk', segmentBytes, node }
  const onMessage = (message: AuditThreadMessage): void => trail.onMessage(message)
  const died = (cause: unknown): void => parts.recorder.note('error', 'audit_thread_ended', { cause })
  const writing =
    parts.here === true
      ? new WriterHere(ring, plan, { after, onMessage })
      : new WriterThread({ ...plan, memory: ring.memory }, { after, begun: parts.begun, onMessage, died })
  if (parts.begun !== undefined) {
    ring.setFailing(true)
    void parts.begun.then(() => {
      ring.setFailing(false)
      // Workers are told, too.
      trail.onMessage(null)
    })
  }
  const trail = new WritingTrail(writer, { queue: ring, writing }, { ...parts, timeout })
  return trail
}

export class WritingTrail extends OpenTrail {
  /** The name of the trail. */
  readonly writer: string
  readonly #parts: WritingParts & TrailParts
  readonly #ring: RecordRing
  readonly #writing: WriterThread | WriterHere
  /** Callers that wait for the end of a segment, by the number of the roll. */
  readonly #rolls: Waiting = this.waiting()
  /** The records of the workers. */
  readonly #taken = new Set<TakenRecords>()
  /** Records of workers that were put. */
  #arrived = 0
  #noneWaits: () => void = () => undefined

  constructor(
    writer: string,
    way: { readonly queue: RecordRing; readonly writing: WriterThread | WriterHere },
    parts: WritingParts & TrailParts,
  ) {
    super(way, parts)
    this.writer = writer
    this.#parts = parts
    this.#ring = way.queue
    this.#writing = way.writing
    this.beforeEnd = (ms) => this.#recordEnd(ms)
  }

  /** The last durable record: what can be signed (C12.4.4). `seq` is 0 before the first. */
  get head(): ChainHead {
    return this.#ring.head
  }

  /** Whether every record that was put is durable. */
  get isWhole(): boolean {
    return this.#ring.published === this.#ring.durable
  }

  /** Takes the records of a worker, as long as its way is open. */
  take(way: RecordedWay): void {
    const { leftOpen = () => undefined } = this.#parts
    const put = (): void => {
      this.#arrived += 1
      this.wakeSoon()
    }
    const taken = new TakenRecords(way, { ring: this.#ring, put, left: leftOpen })
    this.#taken.add(taken)
    // Where nothing can be written, it learns that before it waits for something.
    taken.look()
  }

  /**
   * Ends the segments of what was recorded so far: nothing more is written to their files. Rejects with Fault
   * `audit_unavailable` if that takes longer than the timeout of the trail, or cannot be done.
   */
  roll(): Promise<void> {
    if (this.over !== undefined) return this.over
    const end = this.#ring.askRoll()
    return new Promise((reached, reject) => {
      this.#rolls.add({ end, reached, late: () => reject(late(this.#parts.timeout)) })
      this.#writing.await(true)
    })
  }

  onMessage(message: AuditThreadMessage): void {
    this.look()
    if (message === null) return
    const { abandoned, displaced } = message
    if (displaced) {
      this.displaced += 1
      this.#parts.metrics?.fileDisplaced()
      this.log.displaced(abandoned)
    }
    const { failing } = this.#ring
    if (!this.log.troubled && (failing || !displaced)) this.log.abandoned(abandoned, failing)
  }

  /** All that workers have handed over stands before the last record, as far as the disk takes it in time. */
  async #recordEnd(ms: number): Promise<void> {
    await this.#untilAllTaken(ms)
    for (const taken of this.#taken) taken.stop()
    if (this.#ring.published !== 0) this.put(CLOSED, { awaited: true, most: MOST_FOR_KEPT })
  }

  /** Takes what is still on its way here from workers that have ended, as long as there is some, and room comes for it. */
  async #untilAllTaken(ms: number): Promise<void> {
    const { after = systemAfter } = this.#parts
    const late = Promise.withResolvers<'late'>()
    const cancel = after(ms, () => late.resolve('late'))
    for (let quiet = 0; quiet < QUIET_TURNS && !this.#ring.failing; quiet += 1) {
      const before = this.#arrived
      if (this.#waits) {
        this.#writing.await(true)
        const room = new Promise<void>((resolve) => (this.#noneWaits = resolve))
        if ((await Promise.race([room, late.promise])) === 'late') break
      }
      await nextTurn()
      if (this.#arrived !== before) quiet = -1
    }
    cancel()
  }

  /** Whether records of workers wait for room in the ring. */
  get #waits(): boolean {
    return this.#taken.values().some(({ isWaiting }) => isWaiting)
  }

  protected override looked(): void {
    this.#rolls.reach(this.#ring.rollsDone)
    for (const ms of this.#ring.syncs.take()) this.#parts.metrics?.trailSynced(ms / 1000)
    for (const taken of this.#taken) taken.look()
  }

  protected override look(): void {
    super.look()
    if (this.#taken.size > 0) this.#letIn()
  }

  /** A worker of which something was let in is behind the others the next time: so all get their part of a ring that is full. */
  #letIn(): void {
    for (const taken of [...this.#taken]) {
      const isLetIn = taken.isWaiting && taken.goOn()
      if (isLetIn || taken.isOver) this.#taken.delete(taken)
      if (isLetIn) this.#taken.add(taken)
    }
    if (!this.#waits) this.#noneWaits()
  }
}
