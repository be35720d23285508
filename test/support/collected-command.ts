/** Runs a command where it is called; imports nothing of vitest, so that other processes can have it too. */
import { PassThrough, type Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { runCommandLine } from '../../src/cli/command-line.ts'
import type { WaitClock } from '../../src/operate/operation/terminal.ts'

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Surroundings {
  readonly env: Readonly<Record<string, string>>
  readonly stdin: PassThrough
  /** Where standard output goes, which is then not in the answer. */
  readonly onto?: Writable | undefined
  readonly waiting?: WaitClock | undefined
  /** Whether no other process reads the store: a command that changes it by itself waits for none then. */
  readonly alone?: boolean | undefined
}

export async function collected(
  run: typeof runCommandLine,
  args: readonly string[],
  { env, stdin, onto, waiting, alone = false }: Surroundings,
): Promise<Ended> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const told = Promise.all([text(stdout), text(stderr)])
  const code = await run([...args], {
    ...{ env, stdin: stdin as unknown as NodeJS.ReadStream, stdout: onto ?? stdout, stderr },
    ...(waiting && { waiting }),
    ...(alone && { pause: () => Promise.resolve() }),
  })
  stdout.end()
  stderr.end()
  const [out, error] = await told
  return { code, stdout: out, stderr: error }
}
