/** `postern sessions|families|consents list|end` (C11.5.2). */
import { parseArgs } from 'node:util'
import type { RevocableKind } from '../contracts/revocable.ts'
import { callAdminApi, operatorName } from './admin-commands.ts'
import {
  type Command,
  commandOf,
  countOf,
  EXIT,
  type Subcommand,
  type Terminal,
  UsageError,
} from './command.ts'
import { checkedReason, SERVICE_ORDER, SERVICE_ORDER_HELP, type OrderOptions } from './order-options.ts'
import { confirm, countOfFamilies, rowLines } from './terminal.ts'

const text = { type: 'string' } as const
const flag = { type: 'boolean', default: false } as const

const FILTERS = { subject: text, client: text, business: text }
const LIST = { ...SERVICE_ORDER, ...FILTERS, after: text, limit: text, json: flag }
const END = { ...SERVICE_ORDER, ...FILTERS, preview: flag, yes: flag, json: flag }

type Filter = keyof typeof FILTERS

/** As the admin API answers it. */
interface Row {
  readonly id: string
  readonly subject: string
  readonly client?: string
  readonly business?: string
  readonly fund?: string
  readonly scopes?: readonly string[]
  readonly browser?: string
  readonly begun: string
  readonly lastUsed?: string
  readonly expires?: string
}

/** The rows under the name of their kind. */
type ListAnswer = Readonly<Partial<Record<RevocableKind, readonly Row[]>>> & { readonly next?: string }

interface EndAnswer {
  readonly outcome: 'ended' | 'previewed'
  readonly count: number
  readonly families: number
  readonly rows: readonly Row[]
}

interface Noun {
  readonly kind: RevocableKind
  readonly one: string
  readonly filters: readonly Filter[]
  /** Headings, and what stands below them. */
  readonly columns: Readonly<Record<string, (row: Row) => string>>
  readonly list: string
  readonly end: string
}

const minute = (time: string | undefined): string => time?.slice(0, 16).concat('Z') ?? ''

const place = ({ business = '', fund }: Row): string =>
  fund === undefined ? business : `${business}/${fund}`

const ID = ({ id }: Row): string => id
const SUBJECT = ({ subject }: Row): string => subject
const CLIENT = ({ client = '' }: Row): string => client
const SCOPES = ({ scopes = [] }: Row): string => scopes.join(' ')

const NOUNS: Readonly<Record<RevocableKind, Noun>> = {
  sessions: {
    kind: 'sessions',
    one: 'session',
    filters: ['subject'],
    columns: {
      ID,
      SUBJECT,
      BROWSER: ({ browser = '' }) => browser,
      BEGUN: ({ begun }) => minute(begun),
      EXPIRES: ({ expires }) => minute(expires),
    },
    list: 'Logins in browsers',
    end: 'Log browsers out. Refresh tokens stay: see `postern families` and `postern revoke`',
  },
  families: {
    kind: 'families',
    one: 'family',
    filters: ['subject', 'client', 'business'],
    columns: {
      ID,
      CLIENT,
      SUBJECT,
      PLACE: place,
      SCOPES,
      BEGUN: ({ begun }) => minute(begun),
      'LAST USED': ({ lastUsed }) => minute(lastUsed),
      EXPIRES: ({ expires }) => minute(expires),
    },
    list: 'Families of refresh tokens',
    end: 'End families of refresh tokens, with their codes and access tokens',
  },
  consents: {
    kind: 'consents',
    one: 'consent',
    filters: ['subject', 'client', 'business'],
    columns: { ID, CLIENT, SUBJECT, PLACE: place, SCOPES, GIVEN: ({ begun }) => minute(begun) },
    list: 'What users have allowed clients',
    end: 'Withdraw consents, with the codes and the token families that they gave',
  },
}

const plural = ({ one, kind }: Noun, count: number): string => countOf(count, one, kind)

const tableOf = ({ columns }: Noun, rows: readonly Row[]): string =>
  rowLines(
    Object.keys(columns),
    rows.map((row) => Object.values(columns).map((cell) => cell(row))),
  ).join('')

function listText(noun: Noun, { next, ...answer }: ListAnswer): string {
  const rows = answer[noun.kind] ?? []
  const more = next === undefined ? '' : `more: --after ${next}\n`
  return rows.length === 0 ? `no ${noun.kind}\n${more}` : tableOf(noun, rows) + more
}

function endText(noun: Noun, { outcome, count, families, rows }: EndAnswer): string {
  if (count === 0) return `no ${noun.kind} match\n`
  const more = count > rows.length ? `and ${count - rows.length} more\n` : ''
  const ended = noun.kind === 'sessions' ? '' : ` (${countOfFamilies(families)})`
  const end =
    outcome === 'ended' ? `${plural(noun, count)} ended${ended}` : `${plural(noun, count)} would end`
  return `${tableOf(noun, rows)}${more}${end}\n`
}

const asText =
  <T>(json: boolean, show: (answer: T) => string) =>
  (answer: T): string =>
    json ? `${JSON.stringify(answer, null, 2)}\n` : show(answer)

/** @throws UsageError if a filter is given that this kind does not have */
function filtersOf({ kind, filters }: Noun, values: Readonly<Partial<Record<Filter, string>>>) {
  const given = (Object.keys(FILTERS) as Filter[]).filter((name) => values[name] !== undefined)
  const wrong = given.find((name) => !filters.includes(name))
  if (wrong !== undefined) throw new UsageError(`${kind} cannot be selected by --${wrong}`)
  return Object.fromEntries(given.map((name) => [name, values[name]]))
}

function list(noun: Noun, args: readonly string[], terminal: Terminal): Promise<number> {
  const { values } = parseArgs({ args: [...args], options: LIST })
  const query = { ...filtersOf(noun, values), after: values.after, limit: values.limit }
  const show = asText(values.json, (answer: ListAnswer) => listText(noun, answer))
  return callAdminApi({ method: 'GET', path: `/${noun.kind}`, query }, values, terminal, show)
}

/** Shows what would end; of several, asks before it ends them. */
async function end(noun: Noun, args: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options: END })
  const [id, ...more] = positionals
  const filters = filtersOf(noun, values)
  if (more.length > 0 || (id === undefined) === (Object.keys(filters).length === 0))
    throw new UsageError(`expected an id, or ${noun.filters.map((name) => `--${name}`).join(', ')}`)
  const chosen = id === undefined ? filters : { id }
  const { preview, yes, json } = values
  if (preview) return send(noun, { ...chosen, preview: 'true' }, values, terminal)
  if (id === undefined && !yes) {
    const shown = await send(noun, { ...chosen, preview: 'true' }, { ...values, json: false }, terminal)
    if (shown !== EXIT.done) return shown
    if (!(await confirm(false, terminal))) {
      terminal.stdout.write('nothing was changed\n')
      return EXIT.refused
    }
  }
  return send(noun, chosen, { ...values, json }, terminal)
}

function send(
  noun: Noun,
  chosen: Readonly<Record<string, string | undefined>>,
  options: OrderOptions & { readonly json: boolean },
  terminal: Terminal,
): Promise<number> {
  const query = { ...chosen, reason: checkedReason(options), by: operatorName(terminal) }
  const show = asText(options.json, (answer: EndAnswer) => endText(noun, answer))
  return callAdminApi({ method: 'DELETE', path: `/${noun.kind}`, query }, options, terminal, show)
}

const FILTER_HELP: Readonly<Record<Filter, string>> = {
  subject: '--subject SUB      Of this user',
  client: '--client ID        Of this client',
  business: '--business CODE    For this business',
}

const NOTES = `With several filters, only what matches all of them. At most 1,000 end at once.

${SERVICE_ORDER_HELP}`

function commandFor(noun: Noun): Command {
  const filters = noun.filters.map((name) => FILTER_HELP[name])
  const subcommands: Readonly<Record<string, Subcommand>> = {
    list: {
      usage: 'list [FILTER…] [--after ID] [--limit N] [--json]',
      summary: `${noun.list}, in pages of 100, or of --limit up to 1,000`,
      options: filters,
      run: (args, terminal) => list(noun, args, terminal),
    },
    end: {
      usage: 'end ID | FILTER… [--preview] [--yes] [--json]',
      summary: noun.end,
      options: [
        ...filters,
        '--preview          Show what would end, and change nothing',
        '--yes              With a filter: do not ask',
      ],
      run: (args, terminal) => end(noun, args, terminal),
    },
  }
  return commandOf(noun.kind, subcommands, NOTES)
}

export const sessionsCommand: Command = commandFor(NOUNS.sessions)
export const familiesCommand: Command = commandFor(NOUNS.families)
export const consentsCommand: Command = commandFor(NOUNS.consents)
