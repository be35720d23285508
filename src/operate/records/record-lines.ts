/** What is typed for `postern client`, `user`, `business`, `fund` and `role`, and what it prints (C11.5.1). */
import type { Written } from '../../identity/directory/editors/editing.ts'
import type { RecordKind } from '../../identity/directory/editors/record-kind.ts'
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
import { LINK_OPTIONS, linkInput, type MadeLink, showLink } from './password-link.ts'
import { byOption, endedLines, idLine, listLines, recordLines, showSecret } from './record-text.ts'
import { printAll, printJson, readPassword, type Terminal } from '../operation/terminal.ts'
import { type Argument, type Example, EXIT, type Options, UsageError } from '../operation/verb.ts'

const SWITCHED: Readonly<Record<'disable' | 'enable' | 'remove', (kind: RecordKind) => string>> = {
  disable: ({ texts }) => texts.disable,
  enable: ({ marking }) =>
    `Let it be used again. What has ended stays so${marking ? ', and what the configuration disables too' : ''}`,
  remove: () => 'Remove it, and end what it holds, consents too. Its name may be given again',
}

const EDIT_NOTES = [
  'What is not given stays. A list replaces the whole list before. An empty value empties a list, or removes a value. What was issued beyond what is left ends, and the command tells what.',
]

function example({ noun, texts }: RecordKind, verb: string, more: string, does: string): Example {
  return {
    line: ['postern', noun, verb, texts.samples.name, more].filter((word) => word !== '').join(' '),
    does,
  }
}

const argumentsFor = ({ names }: RecordKind): readonly Argument[] =>
  names.map((name) => ({ name: name.toUpperCase() }))

const paramsOf = (
  { names }: RecordKind,
  { positionals }: Pick<Typed, 'positionals'>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(positionals.map((name, at) => [names[at] ?? '', name]))

const nameOf = ({ positionals }: Pick<Typed, 'positionals'>): string => positionals.join('/')

const STORE_SILENT =
  'The store did not answer in time. The change may have been made: list the entries, then try again if it is missing.'

/** The message about a refused operation on a record: its problems by option. */
const refusedFor =
  (kind: RecordKind) =>
  ({
    status,
    error,
    problems,
    message,
  }: OperationError): { readonly message: string; readonly code: number } => {
    if (error === NO_STORE_NOW) return { message: STORE_SILENT, code: EXIT.failed }
    if (status !== 400) return { message, code: EXIT.failed }
    const lines = problems.map((problem) => `  ${byOption(problem, optionNames(kind))}`)
    return { message: [`The ${kind.noun} has problems.`, ...lines].join('\n'), code: EXIT.refused }
  }

const warn = (kind: RecordKind, warnings: readonly string[], { stderr }: Terminal): void => {
  for (const warning of warnings) stderr.write(`postern: ${byOption(warning, optionNames(kind))} (warning)\n`)
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

async function addOther(kind: RecordKind, session: CommandSession, input: OperationInput): Promise<Added> {
  const added = await session.send<Added>(session.operation, input)
  warn(kind, added.warnings, session.terminal)
  const { subject } = added.record
  session.show({ record: added.record }, () => {
    const withSubject = typeof subject === 'string' ? ` with the subject ${subject}` : ''
    return `${nameOf(session)}: added${withSubject}\n`
  })
  return added
}

/** The request of an addition. @param secrets members that are given in clear text */
function addInput(kind: RecordKind, session: CommandSession, secrets: Written = {}): OperationInput {
  const given = givenRecord(optionsOf(kind), session.values)
  const names = Object.entries(paramsOf(kind, session))
  const within = kind.names.slice(0, -1)
  const params = Object.fromEntries(names.filter(([name]) => within.includes(name)))
  const named = Object.fromEntries(names.filter(([name]) => !within.includes(name)))
  return { params, body: { ...given, ...named, ...secrets } }
}

export const addLine = (kind: RecordKind): CommandLine =>
  commandLine({
    words: [`${kind.noun} add`],
    summary: kind.texts.add,
    arguments: argumentsFor(kind),
    options: argumentsOf(optionsOf(kind)),
    examples: [example(kind, 'add', kind.texts.samples.add, `add a ${kind.noun} to the store`)],
    refused: refusedFor(kind),
    run: async (session) => {
      const input = addInput(kind, session)
      if (kind.secrets === undefined) await addOther(kind, session, input)
      else warn(kind, (await addClient(session, input)).warnings, session.terminal)
      return EXIT.done
    },
  })

/** Of a kind whose records have a password: it is typed, or a link is made by which its owner sets it. */
export const addUserLine = (kind: RecordKind, link: SharedOperation): CommandLine =>
  commandLine({
    words: [`${kind.noun} add`],
    summary: kind.texts.add,
    arguments: argumentsFor(kind),
    options: {
      ...argumentsOf(optionsOf(kind)),
      link: { type: 'boolean', help: 'Ask for no password: print a link by which the user sets one' },
      ...LINK_OPTIONS,
    },
    examples: [
      example(kind, 'add', kind.texts.samples.add, `add a ${kind.noun} to the store`),
      example(kind, 'add', '--link --customer tally', 'invite them: they choose the password'),
    ],
    refused: refusedFor(kind),
    run: async (session) => {
      const { link: isInvited, for: duration } = session.values as {
        readonly link?: boolean
        readonly for?: string
      }
      if (duration !== undefined && isInvited !== true)
        throw new UsageError('--for says how long a link is good: it needs --link')
      if (isInvited !== true) {
        const password = await readPassword(session.terminal, true)
        await addOther(kind, session, addInput(kind, session, { password }))
        return EXIT.done
      }
      const username = nameOf(session)
      // A duration that is no good is refused before anybody is added.
      const order = linkInput(username, duration)
      const { record, warnings } = await session.send<Added>(session.operation, addInput(kind, session))
      warn(kind, warnings, session.terminal)
      session.terminal.stderr.write(`${username}: added with the subject ${String(record['subject'])}\n`)
      showLink(username, await session.send<MadeLink>(link, order), session)
      return EXIT.done
    },
  })

export const showLine = (kind: RecordKind): CommandLine =>
  commandLine({
    words: [`${kind.noun} show`],
    summary: `Show a ${kind.noun}, without hashes`,
    arguments: argumentsFor(kind),
    options: {},
    examples: [example(kind, 'show', '', 'show it')],
    refused: refusedFor(kind),
    input: (typed) => ({ params: paramsOf(kind, typed) }),
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

export const editLine = (kind: RecordKind, show: SharedOperation): CommandLine =>
  commandLine({
    words: [`${kind.noun} edit`],
    summary: `Change a ${kind.noun} of the store`,
    notes: EDIT_NOTES,
    arguments: argumentsFor(kind),
    options: argumentsOf(editOptionsOf(kind)),
    examples: [example(kind, 'edit', kind.texts.samples.edit, 'change this, and leave the rest')],
    refused: refusedFor(kind),
    run: async (session) => {
      const changes = givenChanges(editOptionsOf(kind), session.values)
      const edited = await editRecord(session, show, paramsOf(kind, session), changes)
      const { record, changed, ended, warnings } = edited
      warn(kind, warnings, session.terminal)
      const name = nameOf(session)
      const options = optionNames(kind)
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

export const stateLine = (kind: RecordKind, verb: 'disable' | 'enable' | 'remove'): CommandLine =>
  commandLine({
    words: [`${kind.noun} ${verb}`],
    summary: SWITCHED[verb](kind),
    arguments: argumentsFor(kind),
    options: {},
    examples: [example(kind, verb, '', `${verb} it`)],
    refused: refusedFor(kind),
    input: (typed) => ({ params: paramsOf(kind, typed) }),
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
  kind: RecordKind,
  { values, terminal }: CommandSession<typeof LIST_OPTIONS>,
  pages: Pages,
): Promise<void> {
  const { limit = ROWS, after } = values
  const { items, next } = await pages({ limit, after })
  if (values.json === true) {
    printJson({ [kind.plural]: items, ...(next !== undefined && { next }) }, terminal)
    return
  }
  await printAll(listLines(kind, items, true), terminal)
  if (next !== undefined) terminal.stderr.write(`postern: more follow: --after ${JSON.stringify(next)}\n`)
}

const jsonLine = (record: Written): string => `${JSON.stringify(record)}\n`

/** The lines of every page. */
async function* everyLine(
  kind: RecordKind,
  { after: first, json }: { readonly after?: string | undefined; readonly json?: boolean | undefined },
  pages: Pages,
): AsyncGenerator<string> {
  let after = first
  let isFirst = true
  do {
    const { items, next } = await pages({ limit: MOST_ROWS, after })
    yield (json === true ? items.map(jsonLine) : listLines(kind, items, isFirst)).join('')
    after = next
    isFirst = false
  } while (after !== undefined)
}

export const listLine = (kind: RecordKind): CommandLine =>
  commandLine({
    words: [`${kind.noun} list`],
    summary: `List the ${kind.plural} of the configuration and of the store, page by page`,
    arguments: argumentsFor(kind).slice(0, -1),
    options: LIST_OPTIONS,
    examples: [{ line: `postern ${kind.noun} list ${kind.texts.samples.list}`, does: 'list some of them' }],
    refused: refusedFor(kind),
    run: async (session) => {
      const { values, terminal, send, operation } = session
      const params = paramsOf(kind, session)
      const pages: Pages = async (query) => {
        // An empty text is no key, and the beginning of every one.
        const given = { ...query, prefix: values.prefix || undefined, after: query['after'] || undefined }
        const page = await send<Readonly<Record<string, unknown>>>(operation, { params, query: given })
        return {
          items: page[kind.plural] as readonly Written[],
          next: page['next'] as string | undefined,
        }
      }
      if (values.all === true) await printAll(everyLine(kind, values, pages), terminal)
      else await printPage(kind, session, pages)
      return EXIT.done
    },
  })

export const rotateSecretLine = (kind: RecordKind): CommandLine =>
  commandLine({
    words: ['client rotate-secret'],
    summary: 'Make another secret of a client. The old one stays valid for the overlap',
    arguments: argumentsFor(kind),
    options: {
      overlap: {
        type: 'string',
        kind: 'duration',
        help: 'How long the old secret stays valid; 0s: not at all. Default: 1d',
      },
    },
    examples: [example(kind, 'rotate-secret', '--overlap 7d', 'both secrets work for a week')],
    refused: refusedFor(kind),
    run: async (session) => {
      const { overlap } = session.values
      const body = overlap === undefined ? {} : { overlap }
      const rotated = await bringSecret<Pick<Added, 'record'>>(session, {
        params: paramsOf(kind, session),
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

export const setPasswordLine = (kind: RecordKind): CommandLine =>
  commandLine({
    words: ['user set-password'],
    summary: 'Change the password, typed or piped in. The user must log in again everywhere',
    arguments: argumentsFor(kind),
    options: {},
    examples: [
      example(kind, 'set-password', '', 'ask for the password'),
      example(kind, 'set-password', '< password.txt', 'read it from a file'),
    ],
    refused: refusedFor(kind),
    run: async (session) => {
      const password = await readPassword(session.terminal, true)
      const input = { params: paramsOf(kind, session), body: { password } }
      const { ended } = await session.send<Pick<Edited, 'ended'>>(session.operation, input)
      const username = nameOf(session)
      session.show({ username, changed: ['password'], ended }, () =>
        [`${username}: password changed\n`, ...endedLines(username, ended)].join(''),
      )
      return EXIT.done
    },
  })
