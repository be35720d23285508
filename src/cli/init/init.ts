import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Hasher, hashSecret } from '../../identity/directory/hashing/hasher.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { EXIT, type Given, UsageError } from '../../operate/operation/verb.ts'
import { commandOf, OWN_FILE, writeReport } from '../line/command.ts'
import { commandText, startedBy, type Started } from '../line/started.ts'
import { INIT } from '../line/tables.ts'
import { type Answers, answersOf } from './answers.ts'
import { configurationText, SAMPLE_CALL } from './configuration-text.ts'
import type { Described, OpenDescription } from './described.ts'
import type { OperationBusiness } from './openapi/describe-service.ts'
import type { BusinessPlace } from './openapi/places.ts'
import { openText, operationsTable, TABLE_FILE } from './operations-table.ts'
import type { BusinessValues } from './tenancy.ts'
import type { DescribedAction } from './openapi/described.ts'

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

/** Options that say how a description is read. */
const OF_DESCRIPTIONS = [
  ...(['business-in', 'not-business', 'shared', 'value'] as const),
  ...(['fund-parameter', 'only', 'verbose'] as const),
] as const

type InitValues = Given<(typeof INIT.verbs)['']>['values']

/** A path as people write it: relative to the working directory, unless it is outside. */
function fromHere(path: string): string {
  const here = relative(process.cwd(), path)
  return here.startsWith('..') || isAbsolute(here) ? path : here
}

interface AllAnswers extends Answers {
  readonly values: BusinessValues
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
  described: Described | undefined,
  { clientSecret, password }: Secrets,
): Promise<void> {
  const text = configurationText({
    ...answers,
    service: described?.service,
    data: fromHere(join(folder, 'data')),
    agreement: new Date().toISOString().slice(0, 10),
    secretHash: hashSecret(clientSecret),
    subject: randomUUID(),
    passwordHash: await new Hasher().hash(password),
  })
  await mkdir(folder, { recursive: true, mode: PRIVATE_FOLDER })
  await writeFile(join(folder, OWN_FILE), text, { flag: 'wx', mode: PRIVATE_FILE })
  if (described === undefined) return
  const table = operationsTable(described.operations)
  await writeFile(join(folder, TABLE_FILE), table, { flag: 'wx', mode: PRIVATE_FILE })
}

interface Made {
  readonly file: string
  readonly described: Described | undefined
  readonly answers: Answers
  readonly secrets: Secrets
}

const needsOnlyBusiness = ({ level, action, methods }: DescribedAction): boolean =>
  level === 'business' && !action.includes('{') && Object.hasOwn(methods, 'GET')

/** A call that needs nothing but a business in its path; undefined if the service has none. */
function firstCall({ answers, described }: Made): FirstCall | undefined {
  const called = described === undefined ? SAMPLE_CALL : described.service.actions.find(needsOnlyBusiness)
  if (called === undefined) return undefined
  const code = encodeURIComponent(answers.businesses[0]?.code ?? '')
  return { user: answers.user, path: `/api/1.0/b/${code}/${called.area}/${called.action}` }
}

/** Rejects if standard output cannot be written. In one piece: a reader that goes away has all of it, or nothing. */
const print = (text: string, { stdout }: Terminal): Promise<void> =>
  new Promise((resolve, reject) => {
    stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })

async function show(made: Made, { json, verbose }: InitValues, terminal: Terminal): Promise<void> {
  const { file, answers, secrets, described } = made
  const { notes = [], kinds = [], operations } = described ?? {}
  const started = startedBy(terminal)
  const serve = serveCommandText(file, started)
  const call = firstCall(made)
  const tried = call === undefined ? undefined : tryCommandText(file, call, started)
  const shown = {
    ...{ configuration: file, client_id: answers.client, client_secret: secrets.clientSecret },
    ...{ username: answers.user, password: secrets.password },
  }
  if (json === true) {
    await print(`${JSON.stringify({ ...shown, notes, operations, try: tried, serve }, null, 2)}\n`, terminal)
    return
  }
  const lines = Object.entries(shown).map(([name, value]) => `${name.padEnd(15)}${value}\n`)
  await print(lines.join(''), terminal)
  const told = verbose === true ? notes : kinds
  const more = told.length < notes.length ? ' (--verbose: each of them)' : ''
  if (notes.length > 0)
    terminal.stderr.write(`Not in the file, or yours to decide${more}:\n${told.join('\n')}\n\n`)
  if (operations !== undefined) {
    const table = fromHere(join(dirname(file), TABLE_FILE))
    terminal.stderr.write(`Where the business is (${table}):\n${operationsTable(operations)}\n`)
  }
  terminal.stderr.write('The secret and the password are shown only now: the file has only their hashes.\n')
  if (tried !== undefined)
    terminal.stderr.write(`Call it from a second terminal, once it is served:\n  ${tried}\n`)
  terminal.stderr.write(`Serve it:\n  ${serve}\n`)
}

/** A description of 4 MB leaves so much behind that V8, which has room, would take 80 MB more before it collects. */
const COLLECTED_OFTEN = '--heap-growing-percent=20'

/** Imported only where it is asked for: it loads a reader of OpenAPI. */
async function openDescribed({ from, only = [] }: InitValues): Promise<OpenDescription | undefined> {
  if (from === undefined) return undefined
  setFlagsFromString(COLLECTED_OFTEN)
  const { openDescription } = await import('./described.ts')
  return openDescription(from, only, USUAL_UPSTREAM)
}

/** A URL without a path is that of the server alone: the path of the described address is kept. */
function withBasePath(upstream: string, described: string | undefined): string {
  const { pathname: base = '/' } = URL.parse(described ?? '') ?? {}
  return /^https?:\/\/[^/?]+$/.test(upstream) && base !== '/' ? `${upstream}${base}` : upstream
}

/** The service as it is described, with the business where the service takes it. */
async function describedFor(
  open: OpenDescription | undefined,
  values: InitValues,
  asked: Terminal | undefined,
): Promise<{ readonly described: Described | undefined; readonly places: readonly BusinessPlace[] }> {
  if (open === undefined) return { described: undefined, places: [] }
  const { notBusinessGiven, placesChosen, placesGiven } = await import('./tenancy.ts')
  const given = values['business-in']
  const places =
    given !== undefined ? placesGiven(given) : asked && (await placesChosen(open.places(), asked))
  const described = open.described({
    ...{ places, fund: values['fund-parameter'], only: values.only ?? [], shared: values.shared ?? [] },
    notBusiness: notBusinessGiven(values['not-business'] ?? []),
  })
  return { described, places: places ?? [] }
}

interface Written {
  readonly file: string
  /** The operations that a description has; undefined without `--from`. */
  readonly operations: readonly OperationBusiness[] | undefined
}

async function writeFirst(
  folder: string,
  values: InitValues,
  asked: Terminal | undefined,
  terminal: Terminal,
): Promise<Written> {
  const open = await openDescribed(values)
  const { described, places } = await describedFor(open, values, asked)
  const usual = { upstream: open?.upstream ?? USUAL_UPSTREAM, yes: values.yes === true }
  const given = await answersOf(values, usual, terminal)
  const { valuesOf } = await import('./tenancy.ts')
  const answers = {
    ...given,
    upstream: withBasePath(given.upstream, open?.upstream),
    values: await valuesOf(values.value ?? [], places, given.businesses, asked),
  }
  const secrets = drawSecrets()
  await write(folder, answers, described, secrets)
  const file = fromHere(join(folder, OWN_FILE))
  try {
    await show({ file, answers, secrets, described }, values, terminal)
  } catch (thrown) {
    // Nobody knows its secrets, and another try would find the files in its way.
    await rm(file)
    if (described !== undefined) await rm(join(folder, TABLE_FILE))
    throw thrown
  }
  return { file, operations: described?.operations }
}

/**
 * A description may hold what only the check of the whole file finds.
 *
 * @param asked where nobody was there, the exit code tells what somebody would have read
 */
async function checkWritten(
  { file, operations = [] }: Written,
  asked: Terminal | undefined,
  terminal: Terminal,
): Promise<number> {
  const { checkConfiguration } = await import('../../operate/settings/check-configuration.ts')
  const problems = await checkConfiguration(file, terminal.env)
  if (!problems.failed) {
    const open = asked === undefined ? openText(operations) : undefined
    if (open === undefined) return EXIT.done
    terminal.stderr.write(open)
    return EXIT.undecided
  }
  writeReport(file, problems, terminal)
  terminal.stderr.write('postern: these lines must be corrected before the file can be served\n')
  return EXIT.failed
}

/** What an operator can correct: the folder cannot be written, the description cannot be read. */
const isPlain = (thrown: unknown): thrown is Error =>
  thrown instanceof Error && ('code' in thrown || thrown.name === 'DescriptionError')

/** `postern init [FOLDER]`: writes a first configuration that can be served as it is (C10). Overwrites nothing. */
export const initCommand = commandOf(INIT, {
  '': async ({ positionals, values }, terminal) => {
    if (values['business-parameter'] !== undefined)
      throw new UsageError(
        `--business-parameter is gone: write ${values['business-parameter'].map((name) => `--business-in path:${name}`).join(' ')} (or query:, header:, body:/, by where it stands)`,
      )
    const alone = OF_DESCRIPTIONS.find((name) => values[name] !== undefined)
    if (values.from === undefined && alone !== undefined)
      throw new UsageError(`--${alone} is about a description: expected --from beside it`)
    const folder = resolve(positionals[0] ?? '.')
    const files = values.from === undefined ? [OWN_FILE] : [OWN_FILE, TABLE_FILE]
    const there = files.map((name) => join(folder, name)).find(existsSync)
    if (there !== undefined) {
      terminal.stderr.write(`postern: ${there} exists already and was not changed. Name another folder.\n`)
      return EXIT.failed
    }
    const asked = values.yes !== true && terminal.stdin.isTTY ? terminal : undefined
    try {
      const written = await writeFirst(folder, values, asked, terminal)
      // What was read of a description is in memory no more.
      return values.from === undefined ? EXIT.done : await checkWritten(written, asked, terminal)
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
