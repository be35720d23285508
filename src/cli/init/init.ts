import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { Hasher, hashSecret } from '../../identity/directory/hashing/hasher.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { EXIT, type Given } from '../../operate/operation/verb.ts'
import {
  type ValuesByBusiness,
  type DescribedAction,
  type FirstConfigurationSource,
  type SourcedService,
  SourceError,
} from '../../operate/hooks/first-configuration.ts'
import { commandOf, OWN_FILE, writeReport } from '../line/command.ts'
import { commandText, startedBy, type Started } from '../line/started.ts'
import { type Answers, answersOf } from './answers.ts'
import { configurationText, SAMPLE_CALL } from './configuration-text.ts'
import { EXTENSIONS, INIT, SOURCES } from './table.ts'

// The commands that serve a file and try it, as they can be typed in the folder where this Postern was started.

/** @param file a path from the working folder */
export const serveCommandText = (file: string, started: Started): string =>
  commandText(started, ['serve', file])

/** A call of the API, and who makes it. */
export interface FirstCall {
  readonly user: string
  /** The path; the method is GET. */
  readonly path: string
}

/** @param file a path from the working folder */
export const tryCommandText = (file: string, { user, path }: FirstCall, started: Started): string =>
  commandText(started, ['try', '--config', file, '--user', user, 'GET', path])

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

interface AllAnswers extends Answers {
  readonly values: ValuesByBusiness
}

/** A service from a source, and the name of the file that is written next to the configuration. */
interface Sourced extends SourcedService {
  readonly file: string
}

interface Secrets {
  readonly clientSecret: string
  readonly password: string
}

const drawSecrets = (): Secrets => ({
  clientSecret: newSecret(),
  password: newSecret(PASSWORD_BYTES),
})

/** Writes the files. Rejects with `EEXIST` if one exists. */
async function write(
  folder: string,
  answers: AllAnswers,
  sourced: Sourced | undefined,
  { clientSecret, password }: Secrets,
): Promise<void> {
  const text = configurationText({
    ...answers,
    service: sourced?.service,
    added: EXTENSIONS.flatMap(({ settings }) => settings?.first ?? []),
    data: fromHere(join(folder, 'data')),
    agreement: new Date().toISOString().slice(0, 10),
    secretHash: hashSecret(clientSecret),
    subject: randomUUID(),
    passwordHash: await new Hasher().hash(password),
  })
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER })
  await writeFile(join(folder, OWN_FILE), text, { flag: 'wx', mode: PRIVATE_FILE })
  if (sourced === undefined) return
  await writeFile(join(folder, sourced.file), sourced.operations.table, { flag: 'wx', mode: PRIVATE_FILE })
}

interface Made {
  readonly file: string
  readonly sourced: Sourced | undefined
  readonly answers: Answers
  readonly secrets: Secrets
}

const needsOnlyBusiness = ({ level, action, methods }: DescribedAction): boolean =>
  level === 'business' && !action.includes('{') && Object.hasOwn(methods, 'GET')

/** A call that needs nothing but a business in its path; undefined if the service has none. */
function firstCall({ answers, sourced }: Made): FirstCall | undefined {
  const called = sourced === undefined ? SAMPLE_CALL : sourced.service.actions.find(needsOnlyBusiness)
  if (called === undefined) return undefined
  const code = encodeURIComponent(answers.businesses[0]?.code ?? '')
  return { user: answers.user, path: `/api/1.0/b/${code}/${called.area}/${called.action}` }
}

/** Rejects if standard output cannot be written. In one piece: a reader that goes away has all of it, or nothing. */
const print = (text: string, { stdout }: Terminal): Promise<void> =>
  new Promise((resolve, reject) => {
    stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })

async function show(made: Made, { json }: InitValues, terminal: Terminal): Promise<void> {
  const { file, answers, secrets, sourced } = made
  const { notes = [], told = '', operations } = sourced ?? {}
  const started = startedBy(terminal)
  const serve = serveCommandText(file, started)
  const call = firstCall(made)
  const tried = call === undefined ? undefined : tryCommandText(file, call, started)
  const shown = {
    configuration: file,
    client_id: answers.client,
    client_secret: secrets.clientSecret,
    username: answers.user,
    password: secrets.password,
  }
  if (json === true) {
    await print(
      `${JSON.stringify({ ...shown, notes, operations: operations?.list, try: tried, serve }, null, 2)}\n`,
      terminal,
    )
    return
  }
  const lines = Object.entries(shown).map(([name, value]) => `${name.padEnd(15)}${value}\n`)
  await print(lines.join(''), terminal)
  terminal.stderr.write(told)
  if (sourced !== undefined) {
    const table = fromHere(join(dirname(file), sourced.file))
    terminal.stderr.write(`Where the business is (${table}):\n${sourced.operations.table}\n`)
  }
  terminal.stderr.write('The secret and the password are shown only now: the file has only their hashes.\n')
  if (tried !== undefined)
    terminal.stderr.write(`Call it from a second terminal, once it is served:\n  ${tried}\n`)
  terminal.stderr.write(`Serve it:\n  ${serve}\n`)
}

/** A URL without a path is that of the server alone: the path of the described address is kept. */
function withBasePath(upstream: string, described: string | undefined): string {
  const { pathname: base = '/' } = URL.parse(described ?? '') ?? {}
  return /^https?:\/\/[^/?]+$/.test(upstream) && base !== '/' ? `${upstream}${base}` : upstream
}

interface Written {
  readonly file: string
  /** The decisions that are left where nobody could be asked. */
  readonly open: string | undefined
}

async function writeFirst(
  folder: string,
  values: InitValues,
  source: FirstConfigurationSource | undefined,
  asked: Terminal | undefined,
  terminal: Terminal,
): Promise<Written> {
  const open = await source?.open(values, USUAL_UPSTREAM)
  const read = await open?.service(asked)
  const sourced = source && read && { ...read, file: source.file }
  const usual = { upstream: open?.upstream ?? USUAL_UPSTREAM, yes: values.yes === true }
  const given = await answersOf(values, usual, terminal)
  const answers = {
    ...given,
    upstream: withBasePath(given.upstream, open?.upstream),
    values: (await sourced?.valuesOf(given.businesses)) ?? {},
  }
  const secrets = drawSecrets()
  await write(folder, answers, sourced, secrets)
  const file = fromHere(join(folder, OWN_FILE))
  try {
    await show({ file, answers, secrets, sourced }, values, terminal)
  } catch (thrown) {
    // Nobody knows its secrets, and another try would find the files in its way.
    await rm(file)
    if (sourced !== undefined) await rm(join(folder, sourced.file))
    throw thrown
  }
  return { file, open: sourced?.open }
}

/**
 * A description may hold what only the check of the whole file finds.
 *
 * @param asked where nobody was there, the exit code tells what somebody would have read
 */
async function checkWritten(
  { file, open }: Written,
  asked: Terminal | undefined,
  terminal: Terminal,
): Promise<number> {
  const { checkConfiguration } = await import('../../operate/settings/check-configuration.ts')
  const { SETTINGS } = await import('../../serve/start/settings.ts')
  const problems = await checkConfiguration(SETTINGS, file, terminal.env)
  if (!problems.failed) {
    if (asked !== undefined || open === undefined) return EXIT.done
    terminal.stderr.write(open)
    return EXIT.undecided
  }
  writeReport(file, problems, terminal)
  terminal.stderr.write('postern: these lines must be corrected before the file can be served\n')
  return EXIT.failed
}

/** Whether an operator can correct it: the folder cannot be written, the description cannot be read. */
const isPlain = (thrown: unknown): thrown is Error =>
  thrown instanceof Error && ('code' in thrown || thrown instanceof SourceError)

/** `postern init [FOLDER]`: writes a first configuration that can be served as it is (C10). Overwrites nothing. */
export const initCommand = commandOf(INIT, {
  '': async ({ positionals, values }, terminal) => {
    const [source] = SOURCES.filter((each) => each.isNamed(values))
    const folder = resolve(positionals[0] ?? '.')
    const files = [OWN_FILE, ...(source === undefined ? [] : [source.file])]
    const there = files.map((name) => join(folder, name)).find(existsSync)
    if (there !== undefined) {
      terminal.stderr.write(`postern: ${there} exists already and was not changed. Name another folder.\n`)
      return EXIT.failed
    }
    const asked = values.yes !== true && terminal.stdin.isTTY ? terminal : undefined
    try {
      const written = await writeFirst(folder, values, source, asked, terminal)
      // The description that was read is in memory no more.
      return source === undefined ? EXIT.done : await checkWritten(written, asked, terminal)
    } catch (thrown) {
      if (!isPlain(thrown)) throw thrown
      if (thrown.name === 'AbortError') {
        terminal.stderr.write('\npostern: stopped. Nothing was written.\n')
        return EXIT.failed
      }
      terminal.stderr.write(`postern: ${thrown.message}\n`)
      return EXIT.failed
    }
  },
})
