/** How much the data folder holds, and what its disk has left. Where a disk is full, nobody can log in or change anything. */
import { readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { type Condition, HEALTHY } from '../../base/kernel/health.ts'
import { FAMILIES } from '../../operate/watch/metrics/families.ts'
import { reading } from '../../operate/watch/metrics/gauges.ts'
import { sizeText } from '../../base/kernel/units.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

/** Milliseconds between two measurements. */
const PERIOD = 60_000
/** Bytes below which readiness tells that space runs out. */
const LITTLE = 256 * 1024 ** 2

export class DataSpace implements Disposable {
  readonly #folder: string
  readonly #timer: NodeJS.Timeout
  #bytes: number | undefined
  #free: number | undefined
  #measuring: Promise<void> | undefined

  constructor(folder: string) {
    this.#folder = folder
    this.#timer = setInterval(() => void this.measure(), PERIOD).unref()
  }

  /**
   * Measures now, unless a measurement is under way: a disk may hang. A value that cannot be read is not shown. Never
   * rejects.
   */
  measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => (this.#measuring = undefined))
    return this.#measuring
  }

  async #measure(): Promise<void> {
    this.#free = await freeBytes(this.#folder)
    this.#bytes = await sizeOf(this.#folder)
  }

  readings(): readonly GaugeReading[] {
    return [
      ...(this.#bytes === undefined ? [] : [reading(FAMILIES.dataSize, this.#bytes)]),
      ...(this.#free === undefined ? [] : [reading(FAMILIES.dataFree, this.#free)]),
    ]
  }

  condition(): Condition {
    if (this.#free === undefined || this.#free >= LITTLE) return HEALTHY
    const reason = `its disk has ${sizeText(this.#free)} left: when it is full, nobody can log in or change anything. Free space or enlarge the disk`
    return { failing: [], degraded: [{ name: 'data folder', reason }] }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

const freeBytes = (folder: string): Promise<number | undefined> =>
  statfs(folder).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => undefined,
  )

/** Bytes of all files in a folder and below; undefined if it cannot be read. Files that vanish meanwhile count as none. */
async function sizeOf(folder: string): Promise<number | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => undefined)
  if (entries === undefined) return undefined
  let bytes = 0
  for (const entry of entries)
    if (entry.isFile())
      bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => undefined))?.size ?? 0
  return bytes
}
