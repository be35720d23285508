import type { Environment } from '../config/references.ts'

/** What a verb sees of the process; tests hand in their own. */
export interface Terminal {
  readonly env: Environment
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
}

/** The exit codes of every verb. */
export const EXIT = {
  done: 0,
  /** It was tried and failed. */
  failed: 1,
  /** It was not even tried: the command line or the configuration is wrong. */
  refused: 2,
} as const

/** One verb of the command line, in a file of its own. `args` are those after the verb; answers the exit code. */
export interface Verb {
  /** For `--help`, where there is more to say than the table of verbs does. */
  readonly help?: string
  readonly run: (args: readonly string[], terminal: Terminal) => Promise<number>
}

/** A command line that cannot be meant: told on stderr, exit code 2. */
export class UsageError extends Error {}
