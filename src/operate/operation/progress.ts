/** A bar on stderr that shows how far long work is: on a terminal only, and not for short work. */
import { performance } from 'node:perf_hooks'
import type { ReadProgress } from '../../base/contracts/records/audit-query.ts'
import type { Terminal } from './terminal.ts'

const WIDTH = 30
/** How long work takes before the bar appears, in milliseconds. */
const PATIENCE = 500
/** The time between two changes of the bar, in milliseconds. */
const PAUSE = 100
const CLEAR = '\r\u001b[K'

/** What the bar names. `size`: how much of what is counted is one of it. */
interface Shown {
  readonly name: string
  readonly size: number
}

const MEBIBYTES: Shown = { name: 'MiB', size: 1024 ** 2 }
export const RECORDS: Shown = { name: 'records', size: 1 }

export interface ProgressBar {
  show(progress: ReadProgress): void
  /** Takes it away. To be called before anything else is written. */
  clear(): void
}

const NO_BAR: ProgressBar = { show: () => undefined, clear: () => undefined }

/** @param now milliseconds that only grow */
export function progressBar(
  { stderr }: Pick<Terminal, 'stderr'>,
  now: () => number = () => performance.now(),
  shown = MEBIBYTES,
): ProgressBar {
  if (!('isTTY' in stderr && stderr.isTTY === true)) return NO_BAR
  let due = now() + PATIENCE
  let isVisible = false
  return {
    show(progress) {
      if (now() < due) return
      due = now() + PAUSE
      isVisible = true
      stderr.write(`${CLEAR}${barText(progress, shown)}`)
    },
    clear() {
      if (isVisible) stderr.write(CLEAR)
      isVisible = false
    },
  }
}

/** `[######          ]  40 %  240 of 600 MiB` */
export function barText({ done, total }: ReadProgress, { name, size } = MEBIBYTES): string {
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const bar = '#'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH)
  const percent = String(Math.floor(share * 100)).padStart(3)
  return `[${bar}] ${percent} %  ${Math.round(done / size)} of ${Math.round(total / size)} ${name}`
}
