import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { PassThrough, type Writable } from 'node:stream'
import { runCommandLine } from '../../src/cli/command-line.ts'
import type { WaitClock } from '../../src/operate/operation/terminal.ts'
import { collected, type Ended } from './collected-command.ts'
import { PROGRAM, ROOT } from './program.ts'
import { atEnd } from './shared.ts'

export type { Ended }

export interface Given {
  readonly env?: Readonly<Record<string, string>>
  /** What stands on standard input. */
  readonly input?: string
}

interface GivenVerb extends Given {
  /** In place of `input`: standard input itself, such as a terminal. */
  readonly stdin?: PassThrough
  /** Where standard output goes, which is then not in the answer. */
  readonly onto?: Writable
  readonly waiting?: WaitClock
  /** Whether no other process reads the store: a command that changes it by itself waits for none then. */
  readonly alone?: boolean
}

/** Each pause takes seconds, and is over at once: a command loses its patience after a few looks. */
export function longPauses(): WaitClock {
  let now = 0
  return {
    monotonic: () => now,
    pause: (ms) => {
      now += 40 * ms
      return Promise.resolve()
    },
  }
}

interface GivenProcess extends Given {
  /** The working folder. Default: the repository. */
  readonly cwd?: string
  /** Run as this user of the system, by number. Only root can. */
  readonly user?: number | undefined
}

/** Runs a command in this process: quick, for all that needs no process of its own. */
export const runVerb = (
  args: readonly string[],
  { env = {}, input = '', stdin = new PassThrough().end(input), onto, waiting, alone }: GivenVerb = {},
): Promise<Ended> => collected(runCommandLine, args, { env, stdin, onto, waiting, alone })

/** Runs the real command line in a process of its own, to its end. */
export const spawnVerb = (
  args: readonly string[],
  { env = {}, input = '', cwd = ROOT, user }: GivenProcess = {},
): Promise<Ended> =>
  new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [join(ROOT, PROGRAM), ...args],
      {
        cwd,
        env: { PATH: process.env['PATH'], ...env },
        timeout: 100_000,
        ...(user !== undefined && { uid: user, gid: user }),
      },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
    )
    child.stdin?.end(input)
  })

const VERBS = fileURLToPath(new URL('verbs-program.ts', import.meta.url))

/**
 * A process of another user of the system, if one is given, that runs one command after another: quicker than a process for
 * each. Only root can give a user, by number. Ends with the test.
 */
export function openVerbs({ user, cwd }: Pick<GivenProcess, 'user' | 'cwd'> = {}) {
  const child = fork(VERBS, {
    env: { PATH: process.env['PATH'] },
    execArgv: [],
    ...(cwd !== undefined && { cwd }),
    ...(user !== undefined && { uid: user, gid: user }),
  })
  atEnd(() => void child.kill())
  return async (args: readonly string[], env: Readonly<Record<string, string>>): Promise<Ended> => {
    const ended = Promise.race([
      once(child, 'message') as Promise<[Ended]>,
      once(child, 'exit').then(([code]) => Promise.reject(new Error(`it ended with ${String(code)}`))),
    ])
    child.send([args, env])
    const [answer] = await ended
    return answer
  }
}
