import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { randomUUID } from 'node:crypto'
import { Hasher } from '../directory/hasher.ts'
import { hashSecret } from '../directory/secret-hash.ts'
import { newSecret } from '../kernel/ids.ts'
import { firstConfiguration } from './first-configuration.ts'
import { EXIT, type Terminal } from './command.ts'
import { INIT } from './tables/configurations.ts'
import { printJson } from './terminal.ts'
import { commandOf } from './verbs.ts'
import { OWN_FILE } from './default-file.ts'

const PRIVATE_FILE = 0o600
const PRIVATE_FOLDER = 0o700
/** 120 random bits: a password that somebody has to type once. */
const PASSWORD_BYTES = 15

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

async function contentOf({ clientSecret, password }: Secrets, folder: string): Promise<string> {
  return firstConfiguration({
    data: fromHere(join(folder, 'data')),
    agreement: new Date().toISOString().slice(0, 10),
    secretHash: hashSecret(clientSecret),
    subject: randomUUID(),
    passwordHash: await new Hasher().hash(password),
  })
}

/** Writes the file. Rejects with `EEXIST` if it exists. */
async function write(folder: string, secrets: Secrets): Promise<void> {
  const text = await contentOf(secrets, folder)
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER })
  await writeFile(join(folder, OWN_FILE), text, { flag: 'wx', mode: PRIVATE_FILE })
}

const SECRETS_TEXT = 'The secret and the password are shown only now: the file has only their hashes.\n'

function show(folder: string, { clientSecret, password }: Secrets, json: boolean, terminal: Terminal): void {
  const file = fromHere(join(folder, OWN_FILE))
  const shown = {
    ...{ configuration: file, client_id: 'first-client', client_secret: clientSecret },
    ...{ username: 'first-user', password },
  }
  if (json) printJson(shown, terminal)
  else
    for (const [name, value] of Object.entries(shown)) terminal.stdout.write(`${name.padEnd(15)}${value}\n`)
  terminal.stderr.write(
    `${SECRETS_TEXT}Next: postern check ${file}; UPSTREAM_URL=http://… postern serve ${file}\n`,
  )
}

const isSystemError = (thrown: unknown): thrown is Error => thrown instanceof Error && 'code' in thrown

/** `postern init [FOLDER]`: writes a first configuration that can be served as it is (C10). Overwrites nothing. */
export const initCommand = commandOf(INIT, {
  '': async ({ positionals: [named = '.'], values }, terminal) => {
    const folder = resolve(named)
    const file = join(folder, OWN_FILE)
    if (existsSync(file)) {
      terminal.stderr.write(`postern: ${file} exists already and was not changed. Name another folder.\n`)
      return EXIT.failed
    }
    const secrets = drawSecrets()
    try {
      await write(folder, secrets)
    } catch (thrown) {
      if (!isSystemError(thrown)) throw thrown
      terminal.stderr.write(`postern: ${thrown.message}\n`)
      return EXIT.failed
    }
    show(folder, secrets, values.json === true, terminal)
    return EXIT.done
  },
})
