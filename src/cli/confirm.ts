import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { UsageError, type Terminal } from './verb.ts'

/**
 * Asks before something that cannot be undone; anything but `yes` means no. `yes`: the option `--yes`, which scripts
 * give. Throws UsageError where it was not given and nobody can be asked.
 */
export async function confirm(yes: boolean, { stdin, stderr }: Terminal): Promise<boolean> {
  if (yes) return true
  if (!stdin.isTTY)
    throw new UsageError('this cannot be undone, and nobody can be asked here: add --yes if it is meant')
  const lines = createInterface({ input: stdin, output: stderr })
  try {
    // Where the input ends without an answer, `question` would never be answered.
    const ended = once(lines, 'close').then(() => '')
    const answer = await Promise.race([lines.question('Type yes to go on: '), ended])
    return answer.trim().toLowerCase() === 'yes'
  } finally {
    lines.close()
  }
}
