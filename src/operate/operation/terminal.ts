/** What commands ask on the terminal, and how they print. */
import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { Readable, Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { Environment } from '../../base/config/validate.ts'
import { DIRECTION_CONTROLS } from '../../base/kernel/clean-text.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { textOfBytes, withoutLineEnd } from '../../base/files/text-file.ts'
import { hasCode, messageOf } from '../../base/kernel/thrown.ts'
import { UsageError } from './verb.ts'

/** `1 code`, `2 codes`. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

const ACTED_ON = new RegExp(`[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029${DIRECTION_CONTROLS}]`, 'g')

/** Paths, headers and codes are a caller's own text: characters that would change the terminal are escaped. */
export const escapedForTerminal = (text: string): string =>
  text.replace(ACTED_ON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

const GAP = '  '

/** Rows below their headings as lines, each column as wide as its widest cell. */
export function rowLines(heads: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [heads, ...rows]
  const widths = heads.map((_head, at) => all.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), 0))
  return all.map((row) => {
    const cells = row.map((cell, at) => cell.padEnd(widths[at] ?? 0))
    return `${cells.join(GAP).trimEnd()}\n`
  })
}

/** A value as indented JSON. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

export const countOfFamilies = (count: number): string =>
  countOf(count, 'family of refresh tokens', 'families of refresh tokens')

/** How a command that waits for another process reads the time and pauses. */
export interface WaitClock extends Pick<Clock, 'monotonic'> {
  /** Resolves after so many milliseconds. */
  readonly pause: (ms: number) => Promise<unknown>
}

/** The part of `process` that a command uses. */
export interface Terminal {
  readonly env: Environment
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WritableStream
  readonly stderr: NodeJS.WritableStream
  /** Default: by the clock of the system. */
  readonly waiting?: WaitClock
  /** Waits until other processes know of what a command changed in the store by itself. Tests pass their own. */
  readonly pause?: WaitClock['pause']
}

/**
 * Asks before something that cannot be undone. Any answer but `yes` means no. The option `--yes` (`yes`) answers for
 * scripts.
 *
 * @throws UsageError if `--yes` is missing and standard input is not a terminal
 */
export async function confirm(yes: boolean, { stdin, stderr }: Terminal): Promise<boolean> {
  if (yes) return true
  if (!stdin.isTTY)
    throw new UsageError('this cannot be undone, and there is no terminal to ask on: add --yes to confirm')
  const lines = createInterface({ input: stdin, output: stderr })
  try {
    // `question` never settles if the input ends without an answer.
    const ended = once(lines, 'close').then(() => '')
    const answer = await Promise.race([lines.question('Type yes to continue: '), ended])
    return answer.trim().toLowerCase() === 'yes'
  } finally {
    lines.close()
  }
}

const NOWHERE = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** Asks without echo: readline writes what is typed to an output that discards it. */
async function promptHidden(prompt: string, { stdin, stderr }: Terminal): Promise<string> {
  stderr.write(prompt)
  const lines = createInterface({ input: stdin, output: NOWHERE(), terminal: true })
  try {
    return await lines.question('')
  } finally {
    lines.close()
    stderr.write('\n')
  }
}

/** All of standard input without its last line end, so that `echo secret |` and a file both work. */
const readPiped = async (terminal: Terminal): Promise<string> =>
  withoutLineEnd(await readArgument('@-', terminal))

const NO_PASSWORD =
  'there is no password on standard input: write it there, or run the command in a terminal, which asks for it'

/**
 * Reads a password that is typed or piped in. It is never an argument: every process list shows arguments. `twice` asks
 * again if it is typed, because it is not shown.
 *
 * @throws UsageError if the password is empty or no UTF-8, or the two differ
 */
export async function readPassword(terminal: Terminal, twice = false): Promise<string> {
  const typed = terminal.stdin.isTTY
  const password = typed ? await promptHidden('Password: ', terminal) : await readPiped(terminal)
  if (password === '') throw new UsageError(typed ? 'the password is empty' : NO_PASSWORD)
  if (typed && twice && (await promptHidden('Again: ', terminal)) !== password)
    throw new UsageError('the two passwords differ')
  return password
}

/** The bytes that an argument names: itself, `@FILE`, or `@-` for standard input. @throws UsageError */
export async function readBytes(argument: string, { stdin }: Terminal): Promise<Buffer> {
  if (!argument.startsWith('@')) return Buffer.from(argument)
  if (argument === '@-') return buffer(stdin)
  try {
    return await readFile(argument.slice(1))
  } catch (error) {
    throw new UsageError(`${argument}: ${(error as Error).message}`)
  }
}

/** The text that an argument names, in the same way. @throws UsageError if it is no UTF-8 either */
export async function readArgument(argument: string, terminal: Terminal): Promise<string> {
  const bytes = await readBytes(argument, terminal)
  try {
    return textOfBytes(bytes)
  } catch (thrown) {
    throw new UsageError(`${argument === '@-' ? 'standard input' : argument}: ${messageOf(thrown)}`)
  }
}

/**
 * Writes texts one by one, no faster than they are read, so that a long list needs little memory. A reader that has seen
 * enough (`| head`) ends it.
 */
export async function printAll(
  texts: Iterable<string> | AsyncIterable<string>,
  { stdout }: Terminal,
): Promise<void> {
  try {
    await pipeline(Readable.from(texts), stdout, { end: false })
  } catch (thrown) {
    if (!hasCode(thrown, 'EPIPE')) throw thrown
  }
}

export const printJson = (value: unknown, { stdout }: Terminal): void => {
  stdout.write(jsonText(value))
}

const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/

/** A word as a POSIX shell reads it. */
export const shellWord = (text: string): string =>
  PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
