import { setImmediate } from 'node:timers'
import { type After, after as systemAfter } from '../../../base/kernel/clock.ts'
import type { AuditThreadMessage } from './audit-thread.ts'
import { type ChainPlan, ChainWriter } from './chain-writer.ts'
import type { RecordWriting } from '../queue/record-queue.ts'
import type { RecordRing } from '../queue/record-ring.ts'
import type { WriterThreadParts } from './thread.ts'

/** The longest timer of Node, in milliseconds. */
const FOR_EVER = 2 ** 31 - 1

/**
 * The writer of a command's trail, in the command's own thread: another one would take longer to start than all that it had to
 * write. Its syncs run aside, so that a disk that hangs holds nobody for longer than the timeout of the trail.
 */
export class WriterHere implements RecordWriting {
  readonly #after: After
  readonly #ended: Promise<void>
  /** Nothing else keeps the process alive while the writer waits to try again. */
  readonly #alive = setInterval(() => undefined, FOR_EVER).unref()

  constructor(
    ring: RecordRing,
    plan: ChainPlan,
    { onMessage, after = systemAfter }: Omit<WriterThreadParts, 'died'>,
  ) {
    this.#after = after
    const send = (message: AuditThreadMessage): void => void setImmediate(() => onMessage(message))
    const writer = new ChainWriter(plan, {
      ring,
      waits: ring.unblocking,
      shares: true,
      signal: () => {
        if (ring.claimSignal()) send(null)
      },
      abandoned: (abandoned, displaced) => send({ abandoned, displaced }),
    })
    this.#ended = writer.run()
  }

  /** As the writing thread does. */
  await(awaited: boolean): void {
    if (awaited) this.#alive.ref()
    else this.#alive.unref()
  }

  /** Resolves when the writer has ended by itself, or after `ms` milliseconds. */
  async ended(ms: number): Promise<void> {
    this.#alive.ref()
    const late = Promise.withResolvers<undefined>()
    const cancel = this.#after(ms, () => late.resolve(undefined))
    await Promise.race([this.#ended, late.promise])
    cancel()
    clearInterval(this.#alive)
  }
}
