import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { UsageError, type Terminal } from './verb.ts'

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
