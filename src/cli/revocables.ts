/** `postern sessions|families|consents list|end` (C11.5.2). */
import type { RevocableKind } from '../contracts/revocable.ts'
import { confirm, type Terminal } from '../operator/terminal.ts'
import { countOf, countOfFamilies, rowLines } from '../operator/text.ts'
import { EXIT, type Given, UsageError } from '../operator/verb.ts'
import { callAdminApi, operatorName } from './admin-commands.ts'
import { type CallOptions, checkedReason } from './call-options.ts'
import type { Command } from './command.ts'
import { CONSENTS, FAMILIES, SESSIONS } from './tables/revocables.ts'
import { commandOf } from './verbs.ts'

type Filter = 'subject' | 'client' | 'business'

/** The widest: sessions have fewer filters. */
type ListGiven = Given<typeof FAMILIES.verbs.list>
type EndGiven = Given<typeof FAMILIES.verbs.end>

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
      'LAST USED': ({ lastUsed }) => minute(lastUsed),
      EXPIRES: ({ expires }) => minute(expires),
    },
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
  },
  consents: {
    kind: 'consents',
    one: 'consent',
    filters: ['subject', 'client', 'business'],
    columns: { ID, CLIENT, SUBJECT, PLACE: place, SCOPES, GIVEN: ({ begun }) => minute(begun) },
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

const filtersOf = (
  { filters }: Noun,
  values: Readonly<Partial<Record<Filter, string | undefined>>>,
): Readonly<Partial<Record<Filter, string>>> =>
  Object.fromEntries(filters.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])))

const list =
  (noun: Noun) =>
  ({ values }: ListGiven, terminal: Terminal): Promise<number> => {
    const query = { ...filtersOf(noun, values), after: values.after, limit: values.limit }
    const show = (answer: ListAnswer): string => listText(noun, answer)
    return callAdminApi({ method: 'GET', path: `/${noun.kind}`, query }, values, terminal, show)
  }

/** Shows what would end; of several, asks before it ends them. */
const end =
  (noun: Noun) =>
  async ({ values, positionals: [id] }: EndGiven, terminal: Terminal): Promise<number> => {
    const filters = filtersOf(noun, values)
    if ((id === undefined) === (Object.keys(filters).length === 0))
      throw new UsageError(`expected an id, or ${noun.filters.map((name) => `--${name}`).join(', ')}`)
    const chosen = id === undefined ? filters : { id }
    if (values.preview === true) return send(noun, { ...chosen, preview: 'true' }, values, terminal)
    if (id === undefined && values.yes !== true) {
      const shown = await send(noun, { ...chosen, preview: 'true' }, { ...values, json: false }, terminal)
      if (shown !== EXIT.done) return shown
      if (!(await confirm(false, terminal))) {
        terminal.stdout.write('nothing was changed\n')
        return EXIT.refused
      }
    }
    return send(noun, chosen, values, terminal)
  }

function send(
  noun: Noun,
  chosen: Readonly<Record<string, string | undefined>>,
  options: CallOptions & { readonly json?: boolean | undefined },
  terminal: Terminal,
): Promise<number> {
  const query = { ...chosen, reason: checkedReason(options), by: operatorName(terminal) }
  const show = (answer: EndAnswer): string => endText(noun, answer)
  return callAdminApi({ method: 'DELETE', path: `/${noun.kind}`, query }, options, terminal, show)
}

const worksOf = (noun: Noun) => ({ list: list(noun), end: end(noun) })

export const sessionsCommand: Command = commandOf(SESSIONS, worksOf(NOUNS.sessions))
export const familiesCommand: Command = commandOf(FAMILIES, worksOf(NOUNS.families))
export const consentsCommand: Command = commandOf(CONSENTS, worksOf(NOUNS.consents))
