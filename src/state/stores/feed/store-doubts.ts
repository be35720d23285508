/** The doubts of a process about its store, until an operator says that it is right. */
import type { Recorder } from '../../../base/contracts/records/recorder.ts'
import type { Doubted, StoreAtStart } from '../../../base/contracts/records/store.ts'
import { type After, after as systemAfter, type Clock, repeatedly } from '../../../base/kernel/clock.ts'
import { JUMP, type TrustedOffset } from '../../../base/kernel/store-clock.ts'
import { durationText } from '../../../base/kernel/units.ts'
import type { ChangeFeed } from './change-feed.ts'

interface StoreDoubtsParts {
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'append' | 'seen' | 'accept'>
  readonly clock: Clock
  /** Undefined where the store has no clock of its own. */
  readonly offset: TrustedOffset | undefined
  /** Acts that the trail has and the store lacks, in words. */
  readonly lacks?: readonly string[] | undefined
}

/** The topic of the changes by which all processes of all nodes learn what was accepted. */
const TOPIC = 'store_accepted'
/** How long such a change is kept, in milliseconds: a process that starts later has nothing to doubt. */
const KEPT = 3_600_000
const MINUTE = 60_000

export class StoreDoubts {
  readonly #parts: StoreDoubtsParts

  constructor(parts: StoreDoubtsParts) {
    this.#parts = parts
    const { feed, offset } = parts
    feed.subscribe(TOPIC, {
      apply: ({ value: { ahead, seen } }) => {
        if (typeof ahead === 'number') offset?.accept(ahead)
        if (typeof seen === 'number') feed.accept(seen)
      },
    })
  }

  /** As `TrustedOffset.doubt`. */
  get clock(): number | undefined {
    return this.#parts.offset?.doubt
  }

  /** The highest number that this node has seen, if the store is much older; otherwise undefined. */
  get contents(): number | undefined {
    const { sequence, doubted } = this.#parts.feed.seen
    return doubted ? sequence : undefined
  }

  /** A sentence for each, with what ends it. */
  get reasons(): readonly string[] {
    return [
      ...(this.clock === undefined ? [] : [clockReason(this.clock)]),
      ...(this.contents === undefined ? [] : [contentsReason(this.#parts.lacks)]),
    ]
  }

  /** False if it is not doubted here. Rejects with Fault `identity_unavailable` if the store cannot be written. */
  async accept(what: Doubted): Promise<boolean> {
    const { feed, clock } = this.#parts
    const doubt = this[what]
    if (doubt === undefined) return false
    await feed.append(TOPIC, what === 'clock' ? { ahead: doubt } : { seen: doubt }, clock.now() + KEPT)
    return true
  }
}

function contentsReason(lacks: readonly string[] = []): string {
  const told = lacks.length === 0 ? '' : ` (the audit trail has later changes: ${lacks.join('; ')})`
  return `it is older than what this node has seen, as after a restored backup${told}: no token is issued until \`postern store accept --contents\``
}

function clockReason(ahead: number): string {
  const by = durationText(Math.max(1, Math.round(Math.abs(ahead) / MINUTE)) * MINUTE)
  return `its clock has jumped ${by} ${ahead > 0 ? 'ahead' : 'back'}: nothing is purged, and what has expired by it alone is 503, until it is back or \`postern store accept --clock\``
}

/**
 * A process that starts has seen no jump. It asks the other nodes, and else the newest time in the store: if the clock
 * of this machine is nearer to that, the store's clock is doubted. A machine whose own clock is wrong is not nearer,
 * unless nobody has written for as long as it is behind.
 */
export function compareClock(
  offset: TrustedOffset,
  { newest, clockDoubt }: StoreAtStart,
  machine: Clock,
): void {
  const { value } = offset
  if (value === undefined || clockDoubt === 0) return
  if (clockDoubt !== undefined) {
    offset.assume(value - clockDoubt, false)
    return
  }
  const far = Math.abs(machine.monotonic() + value - newest)
  const near = Math.abs(machine.now() - newest)
  const isPossible = machine.now() >= newest - JUMP
  if (newest > 0 && isPossible && near + JUMP < far) offset.assume(machine.now() - machine.monotonic(), true)
}

/** Milliseconds between two looks. */
const INTERVAL = 10_000
/** A clock that is off by more milliseconds than this is worth a look of an operator, though nothing depends on it. */
const WORTH_TELLING = 1000

interface ClockDriftParts {
  readonly store: Clock
  readonly offset: Pick<TrustedOffset, 'doubt'>
  readonly machine: Clock
  readonly recorder: Pick<Recorder, 'note'>
}

/** Logs when the clock of this machine and that of the store differ. */
export class ClockDrift {
  readonly #parts: ClockDriftParts
  #isLogged = false
  readonly stop: () => void

  constructor(parts: ClockDriftParts, after: After = systemAfter) {
    this.#parts = parts
    this.stop = repeatedly(after, INTERVAL, () => this.#look())
  }

  /** By how much the store's clock is ahead, in seconds. */
  get seconds(): number {
    const { store, offset, machine } = this.#parts
    return (store.now() + (offset.doubt ?? 0) - machine.now()) / 1000
  }

  #look(): number {
    const isFar = Math.abs(this.seconds) * 1000 > WORTH_TELLING
    if (isFar && !this.#isLogged)
      this.#parts.recorder.note('warn', 'clock_differs_from_store', {
        seconds: Number(this.seconds.toFixed(1)),
      })
    this.#isLogged = isFar
    return INTERVAL
  }
}
