import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import { type Terminal, UsageError } from './command.ts'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'

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

const NOWHERE = () => new Writable({ write: (_chunk, _encoding, done) => done() })

/** Asks without echo: readline draws what is typed on an output that goes nowhere. */
async function ask(prompt: string, { stdin, stderr }: Terminal): Promise<string> {
  stderr.write(prompt)
  const lines = createInterface({ input: stdin, output: NOWHERE(), terminal: true })
  try {
    return await lines.question('')
  } finally {
    lines.close()
    stderr.write('\n')
  }
}

/** The whole of stdin without its last line end, so that `echo secret |` and a file both work. */
const readPiped = async ({ stdin }: Terminal): Promise<string> => (await text(stdin)).replace(/\r?\n$/, '')

/**
 * A password that is typed or piped in; never one on the command line, which every process list shows. `twice`: typed
 * again, since nobody saw it. Throws UsageError if there is none, or the two differ.
 */
export async function readPassword(terminal: Terminal, twice = false): Promise<string> {
  const typed = terminal.stdin.isTTY
  const password = typed ? await ask('Password: ', terminal) : await readPiped(terminal)
  if (password === '') throw new UsageError('the password is empty')
  if (typed && twice && (await ask('Again: ', terminal)) !== password)
    throw new UsageError('the two passwords differ')
  return password
}

const GAP = '  '

/** Writes rows under their heads, each column as wide as its widest cell. */
export function printRows(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  { stdout }: Terminal,
): void {
  const all = [heads, ...rows]
  const widths = heads.map((_head, at) => all.reduce((most, row) => Math.max(most, row[at]?.length ?? 0), 0))
  for (const row of all)
    stdout.write(
      `${row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join(GAP)
        .trimEnd()}\n`,
    )
}

/** Writes a value as indented JSON. */
export const printJson = (value: unknown, { stdout }: Terminal): void => {
  stdout.write(`${JSON.stringify(value, null, 2)}\n`)
}

/** `1 code`, `2 codes`. */
export const countOf = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`

export const countOfFamilies = (count: number): string =>
  countOf(count, 'family of refresh tokens', 'families of refresh tokens')
