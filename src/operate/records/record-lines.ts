/** What is typed for `postern client`, `user`, `business`, `fund` and `role`, and what it prints (C11.5.1). */
import { isMarkable } from '../../identity/directory/records/marks.ts'
import { type NounName, NOUNS, type Written } from '../../identity/directory/editors/nouns.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { NO_STORE_NOW, OperationError } from '../operation/errors.ts'
import {
  type CommandLine,
  commandLine,
  type OperationInput,
  type CommandSession,
  type SharedOperation,
  type Typed,
} from '../operation/operation.ts'
import {
  argumentsOf,
  editOptionsOf,
  givenChanges,
  givenRecord,
  optionNames,
  optionsOf,
} from './record-options.ts'
import { byOption, endedLines, idLine, listLines, recordLines, showSecret } from './record-text.ts'
import { printAll, printJson, readPassword, type Terminal } from '../operation/terminal.ts'
import { type Argument, type Example, EXIT, type Options } from '../operation/verb.ts'

/** In sentences of the help. */
const ADDED: Readonly<Record<NounName, string>> = {
  client: 'Add a client, and show its secret',
  user: 'Add a user. The password is typed or piped in',
  business: 'Add a business',
  fund: 'Add a fund to a business of the store that lists its funds',
  role: 'Add a role',
}

const SWITCHED: Readonly<Record<'disable' | 'enable' | 'remove', (noun: NounName) => string>> = {
  disable: (noun) => DISABLED[noun],
  enable: (noun) =>
    `Let it be used again. What has ended stays so${isMarkable(noun) ? ', and what the configuration disables too' : ''}`,
  remove: () => 'Remove it, and end what it holds, consents too. Its name may be given again',
}

const DISABLED: Readonly<Record<NounName, string>> = {
  client:
    'Refuse all its requests and revoke its tokens, in every process within a second. Also one of the configuration',
  user: 'Refuse all logins, and end tokens and sessions, in every process within a second. Also one of the configuration',
  business: 'Refuse all calls and tokens for it, and end what was issued for it; consents stay',
  fund: 'Refuse all calls and tokens for it',
  role: 'Users with this role may do nothing at the business, from their next token on',
}

const EDIT_NOTES = [
  'What is not given stays. A list replaces the whole list before. An empty value empties a list, or removes a value. What was issued beyond what is left ends, and the command tells what.',
]

interface Samples {
  /** A name, as it is typed. */
  readonly name: string
  readonly add: string
  readonly edit: string
  readonly list: string
}

/** The values in the examples. */
const SAMPLES: Readonly<Record<NounName, Samples>> = {
  client: {
    name: 'tally',
    add: "--kind customer --name Tally --business ACME --scope 'openid fund.read'",
    edit: "--scope 'openid fund.read'",
    list: '--prefix ta',
  },
  user: {
    name: 'dora',
    add: '--customer tally --access ACME=Read-only < password.txt',
    edit: '--access ACME=Administrator --claim email=dora@example.com',
    list: '--all --json',
  },
  business: { name: 'INITECH', add: '--name Initech', edit: "--name 'Initech Ltd'", list: '--limit 20' },
  fund: { name: 'INITECH SUPER1', add: "--name 'Super One'", edit: "--name 'Super 1'", list: 'INITECH' },
  role: {
    name: 'Clerk',
    add: "--scope 'fund.read business.fund.list'",
    edit: '--scope fund.read',
    list: '--json',
  },
}

function example(noun: NounName, verb: string, more: string, does: string): Example {
  const { name } = SAMPLES[noun]
  return { line: ['postern', noun, verb, name, more].filter((word) => word !== '').join(' '), does }
}

const argumentsFor = (noun: NounName): readonly Argument[] =>
  NOUNS[noun].names.map((name) => ({ name: name.toUpperCase() }))

const paramsOf = (
  noun: NounName,
  { positionals }: Pick<Typed, 'positionals'>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(positionals.map((name, at) => [NOUNS[noun].names[at] ?? '', name]))

const nameOf = ({ positionals }: Pick<Typed, 'positionals'>): string => positionals.join('/')

const STORE_SILENT =
  'The store did not answer in time. The change may have been made: list the entries, then try again if it is missing.'

/** The message about a refused operation on a record: its problems by option. */
const refusedFor =
  (noun: NounName) =>
  ({
    status,
    error,
    problems,
    message,
  }: OperationError): { readonly message: string; readonly code: number } => {
    if (error === NO_STORE_NOW) return { message: STORE_SILENT, code: EXIT.failed }
    if (status !== 400) return { message, code: EXIT.failed }
    const lines = problems.map((problem) => `  ${byOption(problem, optionNames(noun))}`)
    return { message: [`The ${noun} has problems.`, ...lines].join('\n'), code: EXIT.refused }
  }

const warn = (noun: NounName, warnings: readonly string[], { stderr }: Terminal): void => {
  for (const warning of warnings) stderr.write(`postern: ${byOption(warning, optionNames(noun))} (warning)\n`)
}

interface Added {
  readonly record: Written
  readonly warnings: readonly string[]
}

interface Previewed extends Pick<Added, 'record'> {
  readonly intent?: string
}

/**
 * Shows a new secret, then has it stored: a secret that nobody has seen is never in force. The record of it comes first: no
 * secret is shown that could not be recorded.
 */
async function bringSecret<A>(
  { operation, send, values, terminal }: CommandSession,
  input: OperationInput,
): Promise<A | undefined> {
  const asked = (query: OperationInput['query']): OperationInput => ({
    ...input,
    query: { ...input.query, ...query },
  })
  const { record, intent } = await send<Previewed>(operation, asked({ preview: 'recorded' }))
  // It has none: it is public, or authenticates by its keys.
  if (record['validSecrets'] === undefined) return undefined
  const secret = newSecret()
  await showSecret(secret, record, values.json === true, terminal).catch(async (thrown: unknown) => {
    await send(operation, asked({ preview: 'withdrawn', intent })).catch(() => undefined)
    throw thrown
  })
  return send<A>(operation, { ...asked({ intent }), body: { ...input.body, secret } })
}

async function addClient(session: CommandSession, input: OperationInput): Promise<Added> {
  const shown = await bringSecret<Added>(session, input)
  if (shown !== undefined) return shown
  const added = await session.send<Added>(session.operation, input)
  session.show({ record: added.record }, () => idLine(nameOf(session)))
  return added
}

async function addOther(noun: NounName, session: CommandSession, input: OperationInput): Promise<Added> {
  const added = await session.send<Added>(session.operation, input)
  warn(noun, added.warnings, session.terminal)
  const subject = noun === 'user' ? ` with the subject ${String(added.record['subject'])}` : ''
  session.show({ record: added.record }, () => `${nameOf(session)}: added${subject}\n`)
  return added
}

export const addLine = (noun: NounName): CommandLine =>
  commandLine({
    words: [`${noun} add`],
    summary: ADDED[noun],
    arguments: argumentsFor(noun),
    options: argumentsOf(optionsOf(noun)),
    examples: [example(noun, 'add', SAMPLES[noun].add, `add a ${noun} to the store`)],
    refused: refusedFor(noun),
    run: async (session) => {
      const { terminal, values } = session
      const given = givenRecord(optionsOf(noun), values)
      const names = paramsOf(noun, session)
      const secrets = noun === 'user' ? { password: await readPassword(terminal, true) } : {}
      const within = NOUNS[noun].names.slice(0, -1)
      const params = Object.fromEntries(Object.entries(names).filter(([name]) => within.includes(name)))
      const named = Object.fromEntries(Object.entries(names).filter(([name]) => !within.includes(name)))
      const input = { params, body: { ...given, ...named, ...secrets } }
      if (noun !== 'client') await addOther(noun, session, input)
      else warn(noun, (await addClient(session, input)).warnings, terminal)
      return EXIT.done
    },
  })

export const showLine = (noun: NounName): CommandLine =>
  commandLine({
    words: [`${noun} show`],
    summary: `Show a ${noun}, without hashes`,
    arguments: argumentsFor(noun),
    options: {},
    examples: [example(noun, 'show', '', 'show it')],
    refused: refusedFor(noun),
    input: (typed) => ({ params: paramsOf(noun, typed) }),
    text: (record: Written) => recordLines(record).join(''),
  })

const isPlainObject = (value: unknown): value is Written =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The merge patch that makes one value of another. */
function patchBetween(before: unknown, after: unknown): unknown {
  if (after === undefined) return null
  if (!isPlainObject(before) || !isPlainObject(after)) return after
  const gone = Object.keys(before).filter((key) => after[key] === undefined)
  return {
    ...Object.fromEntries(gone.map((key) => [key, null])),
    ...Object.fromEntries(
      Object.entries(after).map(([key, value]) => [key, patchBetween(before[key], value)]),
    ),
  }
}

interface Edited extends Added {
  readonly changed: readonly string[]
  readonly ended: readonly Written[]
}

/** How often a change is tried: somebody else may change the record at the same time, and then it is read and changed anew. */
const ATTEMPTS = 4

/** Given values replace, a patch merges: so the record is read, and the change is made to that version only. */
async function editRecord(
  session: CommandSession,
  show: SharedOperation,
  params: Readonly<Record<string, string>>,
  changes: (before: Written) => Written,
): Promise<Edited> {
  for (let left = ATTEMPTS; left > 0; left--) {
    const { body: before, tag } = await session.answer<Written>(show, { params })
    const after = changes(before)
    const body = Object.fromEntries(
      Object.entries(after).map(([member, value]) => [member, patchBetween(before[member], value)]),
    )
    try {
      return await session.send<Edited>(session.operation, {
        params,
        body,
        ...(tag !== undefined && { ifMatch: tag }),
      })
    } catch (thrown) {
      if (!(thrown instanceof OperationError && thrown.status === 412)) throw thrown
    }
  }
  throw new OperationError(`"${nameOf(session)}" is being changed by somebody else; try again`)
}

export const editLine = (noun: NounName, show: SharedOperation): CommandLine =>
  commandLine({
    words: [`${noun} edit`],
    summary: `Change a ${noun} of the store`,
    notes: EDIT_NOTES,
    arguments: argumentsFor(noun),
    options: argumentsOf(editOptionsOf(noun)),
    examples: [example(noun, 'edit', SAMPLES[noun].edit, 'change this, and leave the rest')],
    refused: refusedFor(noun),
    run: async (session) => {
      const changes = givenChanges(editOptionsOf(noun), session.values)
      const edited = await editRecord(session, show, paramsOf(noun, session), changes)
      const { record, changed, ended, warnings } = edited
      warn(noun, warnings, session.terminal)
      const name = nameOf(session)
      const options = optionNames(noun)
      const members = changed.map((member) => options[member] ?? member).join(', ')
      const first = changed.length === 0 ? `${name}: as it was\n` : `${name}: changed: ${members}\n`
      session.show({ record, changed, ended }, () => [first, ...endedLines(name, ended)].join(''))
      return EXIT.done
    },
  })

interface Switched {
  readonly record?: Written
  readonly ended?: readonly Written[]
}

/** Says what was done: the configuration may disable a record that no mark disables any more. */
const doneText = (verb: string, { disabled, source }: Written): string =>
  verb === 'enable' && disabled === true && source === 'configuration'
    ? 'its mark is removed, but the configuration disables it still: enable it there'
    : `${verb}d`

export const stateLine = (noun: NounName, verb: 'disable' | 'enable' | 'remove'): CommandLine =>
  commandLine({
    words: [`${noun} ${verb}`],
    summary: SWITCHED[verb](noun),
    arguments: argumentsFor(noun),
    options: {},
    examples: [example(noun, verb, '', `${verb} it`)],
    refused: refusedFor(noun),
    input: (typed) => ({ params: paramsOf(noun, typed) }),
    json: (_answer: Switched, typed) => ({ [`${verb}d`]: nameOf(typed) }),
    text: ({ record = {}, ended = [] }: Switched, typed) =>
      [`${nameOf(typed)}: ${doneText(verb, record)}\n`, ...endedLines(nameOf(typed), ended)].join(''),
  })

const ROWS = '100'
/** How many rows a page has where all are wanted. */
const MOST_ROWS = '1000'

const LIST_OPTIONS = {
  prefix: { type: 'string', help: 'Only those whose name begins with it' },
  limit: { type: 'string', kind: 'rows', help: 'Rows of a page: 1 to 1000. Default: 100' },
  after: { type: 'string', value: 'NAME', help: 'The page behind this name' },
  all: { type: 'boolean', help: 'Every page; with --json one record a line' },
} as const satisfies Options

interface RecordPage {
  readonly items: readonly Written[]
  readonly next: string | undefined
}

type Pages = (query: Readonly<Record<string, string | undefined>>) => Promise<RecordPage>

async function printPage(
  noun: NounName,
  { values, terminal }: CommandSession<typeof LIST_OPTIONS>,
  pages: Pages,
): Promise<void> {
  const { limit = ROWS, after } = values
  const { items, next } = await pages({ limit, after })
  if (values.json === true) {
    printJson({ [NOUNS[noun].plural]: items, ...(next !== undefined && { next }) }, terminal)
    return
  }
  await printAll(listLines(noun, items, true), terminal)
  if (next !== undefined) terminal.stderr.write(`postern: more follow: --after ${JSON.stringify(next)}\n`)
}

const jsonLine = (record: Written): string => `${JSON.stringify(record)}\n`

/** The lines of every page. */
async function* everyLine(
  noun: NounName,
  { after: first, json }: { readonly after?: string | undefined; readonly json?: boolean | undefined },
  pages: Pages,
): AsyncGenerator<string> {
  let after = first
  let isFirst = true
  do {
    const { items, next } = await pages({ limit: MOST_ROWS, after })
    yield (json === true ? items.map(jsonLine) : listLines(noun, items, isFirst)).join('')
    after = next
    isFirst = false
  } while (after !== undefined)
}

export const listLine = (noun: NounName): CommandLine =>
  commandLine({
    words: [`${noun} list`],
    summary: `List the ${NOUNS[noun].plural} of the configuration and of the store, page by page`,
    arguments: argumentsFor(noun).slice(0, -1),
    options: LIST_OPTIONS,
    examples: [{ line: `postern ${noun} list ${SAMPLES[noun].list}`, does: 'list some of them' }],
    refused: refusedFor(noun),
    run: async (session) => {
      const { values, terminal, send, operation } = session
      const params = paramsOf(noun, session)
      const pages: Pages = async (query) => {
        // An empty text is no key, and the beginning of every one.
        const given = { ...query, prefix: values.prefix || undefined, after: query['after'] || undefined }
        const page = await send<Readonly<Record<string, unknown>>>(operation, { params, query: given })
        return {
          items: page[NOUNS[noun].plural] as readonly Written[],
          next: page['next'] as string | undefined,
        }
      }
      if (values.all === true) await printAll(everyLine(noun, values, pages), terminal)
      else await printPage(noun, session, pages)
      return EXIT.done
    },
  })

export const ROTATE_SECRET_LINE: CommandLine = commandLine({
  words: ['client rotate-secret'],
  summary: 'Make another secret of a client. The old one stays valid for the overlap',
  arguments: argumentsFor('client'),
  options: {
    overlap: {
      type: 'string',
      kind: 'duration',
      help: 'How long the old secret stays valid; 0s: not at all. Default: 1d',
    },
  },
  examples: [example('client', 'rotate-secret', '--overlap 7d', 'both secrets work for a week')],
  refused: refusedFor('client'),
  run: async (session) => {
    const { overlap } = session.values
    const body = overlap === undefined ? {} : { overlap }
    const rotated = await bringSecret<Pick<Added, 'record'>>(session, {
      params: paramsOf('client', session),
      body,
    })
    const ends = rotated?.record['oldSecretEndsAt']
    session.terminal.stderr.write(
      typeof ends === 'string'
        ? `The old secret is valid until ${ends}.\n`
        : 'The old secret is no longer valid.\n',
    )
    return EXIT.done
  },
})

export const SET_PASSWORD_LINE: CommandLine = commandLine({
  words: ['user set-password'],
  summary: 'Change the password, typed or piped in. The user must log in again everywhere',
  arguments: argumentsFor('user'),
  options: {},
  examples: [
    example('user', 'set-password', '', 'ask for the password'),
    example('user', 'set-password', '< password.txt', 'read it from a file'),
  ],
  refused: refusedFor('user'),
  run: async (session) => {
    const password = await readPassword(session.terminal, true)
    const input = { params: paramsOf('user', session), body: { password } }
    const { ended } = await session.send<Pick<Edited, 'ended'>>(session.operation, input)
    const username = nameOf(session)
    session.show({ username, changed: ['password'], ended }, () =>
      [`${username}: password changed\n`, ...endedLines(username, ended)].join(''),
    )
    return EXIT.done
  },
})
