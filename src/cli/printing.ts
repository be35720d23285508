/** What becomes of a command whose standard output cannot be written. */
import { hasCode, reasonInWords } from '../kernel/thrown.ts'
import type { Terminal } from '../operator/terminal.ts'
import { EXIT } from '../operator/verb.ts'

/**
 * Does the work of a command that prints. Standard output that cannot be written (a full disk) is told, with an exit code
 * that is never that of an answer. A reader that has seen enough (`| head`) changes nothing.
 */
export async function printing(work: () => Promise<number>, { stdout, stderr }: Terminal): Promise<number> {
  let broken: Error | undefined
  const onError = (error: Error): void => void (broken ??= error)
  stdout.on('error', onError)
  const ended = await work().catch((thrown: unknown) => {
    if (broken === undefined) throw thrown
    return EXIT.done
  })
  // A stream reports a failed write only after the write has returned.
  await new Promise(setImmediate)
  if (broken === undefined || hasCode(broken, 'EPIPE')) return ended
  stderr.write(`postern: standard output cannot be written (${reasonInWords(broken)})\n`)
  return EXIT.refused
}
