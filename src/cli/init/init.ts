import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { randomUUID } from 'node:crypto'
import { Hasher } from '../../directory/hasher.ts'
import { hashSecret } from '../../directory/secret-hash.ts'
import { newSecret } from '../../kernel/ids.ts'
import { messageOf } from '../../kernel/thrown.ts'
import { EXIT, type Terminal } from '../command.ts'
import { OWN_FILE } from '../default-file.ts'
import type { Given } from '../options.ts'
import { INIT } from '../tables/init.ts'
import { printJson } from '../terminal.ts'
import { commandOf } from '../verbs.ts'
import { type Answers, answersOf } from './answers.ts'
import { configurationText } from './configuration-text.ts'
import { serveCommandText } from './serve-command.ts'
import type { DescribedService } from './service.ts'

const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700
/** 120 random bits: a password that somebody has to type once. */
const PASSWORD_BYTES = 15
/** Where the service is in the examples of the documentation. */
const USUAL_UPSTREAM = 'http://127.0.0.1:9000'

type InitValues = Given<(typeof INIT.verbs)['']>['values']

/** A path as people write it: relative to the working directory, unless it is outside. */
function fromHere(path: string): string {
  const here = relative(process.cwd(), path)
  return here.startsWith('..') || isAbsolute(here) ? path : here
}

interface Secrets {
  readonly clientSecret: string
  readonly password: string
}

const drawSecrets = (): Secrets => ({
  clientSecret: newSecret(),
  password: newSecret(PASSWORD_BYTES),
})

/** Writes the file. Rejects with `EEXIST` if it exists. */
async function write(
  folder: string,
  answers: Answers,
  service: DescribedService | undefined,
  { clientSecret, password }: Secrets,
): Promise<void> {
  const text = configurationText({
    ...answers,
    service,
    data: fromHere(join(folder, 'data')),
    agreement: new Date().toISOString().slice(0, 10),
    secretHash: hashSecret(clientSecret),
    subject: randomUUID(),
    passwordHash: await new Hasher().hash(password),
  })
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER })
  await writeFile(join(folder, OWN_FILE), text, { flag: 'wx', mode: PRIVATE_FILE })
}

function show(
  file: string,
  { client, user }: Answers,
  { clientSecret, password }: Secrets,
  asJson: boolean,
  terminal: Terminal,
): void {
  const serve = serveCommandText(file, {
    ...{ environment: terminal.env, cwd: process.cwd() },
    ...{ node: process.execPath, entry: process.argv[1] ?? '' },
  })
  const shown = {
    ...{ configuration: file, client_id: client, client_secret: clientSecret },
    ...{ username: user, password },
  }
  if (asJson) {
    printJson({ ...shown, serve }, terminal)
    return
  }
  for (const [name, value] of Object.entries(shown)) terminal.stdout.write(`${name.padEnd(15)}${value}\n`)
  terminal.stderr.write(
    `The secret and the password are shown only now: the file has only their hashes.\nServe it:\n  ${serve}\n`,
  )
}

async function writeFirst(folder: string, values: InitValues, terminal: Terminal): Promise<void> {
  const answers = await answersOf(values, { upstream: USUAL_UPSTREAM, yes: values.yes === true }, terminal)
  const secrets = drawSecrets()
  await write(folder, answers, undefined, secrets)
  show(fromHere(join(folder, OWN_FILE)), answers, secrets, values.json === true, terminal)
}

/** What an operator can correct: the folder cannot be written, the description cannot be read. */
const isPlain = (thrown: unknown): boolean => thrown instanceof Error && 'code' in thrown

/** `postern init [FOLDER]`: writes a first configuration that can be served as it is (C10). Overwrites nothing. */
export const initCommand = commandOf(INIT, {
  '': async ({ positionals, values }, terminal) => {
    const folder = resolve(positionals[0] ?? '.')
    const file = join(folder, OWN_FILE)
    if (existsSync(file)) {
      terminal.stderr.write(`postern: ${file} exists already and was not changed. Name another folder.\n`)
      return EXIT.failed
    }
    try {
      await writeFirst(folder, values, terminal)
    } catch (thrown) {
      if (!isPlain(thrown)) throw thrown
      terminal.stderr.write(`postern: ${messageOf(thrown)}\n`)
      return EXIT.failed
    }
    return EXIT.done
  },
})
