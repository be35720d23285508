/** `postern audit find`, `show` and `open`: what the trail has recorded (C12.5). */
import type { AuditQuery, QueryTexts } from '../../contracts/audit-query.ts'
import { parseArgs } from 'node:util'
import { readQuery } from '../../audit/find/read-query.ts'
import { type Subcommand, type Terminal, UsageError } from '../command.ts'
import { checkedReason, ORDER, type OrderOptions } from '../order-options.ts'
import { type FormatFlags, FORMATS, formatOf, isExport, showAnswer, WORDS } from './show-answer.ts'

const text = { type: 'string' } as const
const FILTERS = {
  business: text,
  fund: text,
  user: text,
  client: text,
  by: text,
  action: text,
  event: { type: 'string', multiple: true },
  outcome: text,
  request: text,
  changed: { type: 'boolean' },
  month: text,
  from: text,
  until: text,
} as const

type Given = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/** The filters as the admin API takes them. */
function textsOf(values: Given): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.keys(FILTERS).flatMap((name) => {
      const value = values[name]
      return value === undefined ? [] : [[name, Array.isArray(value) ? value.join(',') : String(value)]]
    }),
  )
}

/** @throws UsageError if a filter cannot be read */
function queryOf(texts: QueryTexts): AuditQuery {
  const { query, problems } = readQuery(texts)
  if (problems === undefined) return query
  throw new UsageError(problems.map((problem) => `--${problem.replace('  ', ': ')}`).join('\n  '))
}

const ASKING = [
  '--csv, --jsonl       Export: as CSV, or one JSON object in a line',
  '--reason TEXT        Why it is asked; for the audit trail',
  '--admin-token @FILE  Your own token. Also POSTERN_ADMIN_TOKEN',
  '--config FILE        The configuration that is served',
]

const BY_TIME = [
  '--month 2026-03      All of a month, in UTC',
  '--from, --until      A month, a day or a time with its zone: 2026-03, 2026-03-31, 2026-03-31T18:00Z',
]

type Values = OrderOptions & FormatFlags

interface Words {
  readonly texts: Readonly<Record<string, string>>
  readonly query: AuditQuery
  readonly folders: readonly string[]
  readonly nothing: string
}

function ask(
  { texts, query, folders, nothing }: Words,
  values: Values,
  terminal: Terminal,
  otherwise?: typeof WORDS,
) {
  const options = { ...values, reason: checkedReason(values) }
  const question = { texts, query, purpose: isExport(values) ? 'export' : 'find' } as const
  return showAnswer({ question, folders, options, format: formatOf(values, otherwise), nothing }, terminal)
}

/** Nobody finds alice by her name: the trail knows her `sub` only. */
const nothingOf = ({ user, by }: Given): string =>
  user === undefined && by === undefined
    ? 'No record fits'
    : 'No record fits (a user is named by the `sub` of the tokens, not by the name that is typed)'

export const findVerb: Subcommand = {
  usage: 'find [DIR…] [--changed] [--business CODE] [--fund CODE] [--month 2026-03] …',
  summary: 'Show who did what: all records that fit, and a call as one row. Without filters, all of them',
  options: [
    '--business, --fund   What it was about',
    '--by NAME            Who acted, as it was proven: a subject, a client id, the name of an operator',
    '--user SUBJECT       Who acted, or whom it is about',
    '--client ID          Through which client it came, or which it is about',
    '--action NAME        fund-detail, or fund-data/fund-detail',
    '--event NAME         token.issued, or user.* for a group; may be repeated',
    '--outcome WORD       success, refused, failed, or open: an intent whose outcome is missing',
    '--request ID         A request id',
    '--changed            Only what has changed something, or may have (open)',
    ...BY_TIME,
    ...ASKING,
  ],
  run(args, terminal) {
    const { values, positionals: folders } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { ...FILTERS, ...FORMATS, ...ORDER },
    })
    const texts = textsOf(values)
    return ask({ texts, query: queryOf(texts), folders, nothing: nothingOf(values) }, values, terminal)
  },
}

export const showVerb: Subcommand = {
  usage: 'show REQUEST-ID [DIR…]',
  summary: 'Show every record of one request, in order, with all that it holds',
  options: [...BY_TIME, ...ASKING],
  run(args, terminal) {
    const { month, from, until } = FILTERS
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { month, from, until, ...FORMATS, ...ORDER },
    })
    const [request, ...folders] = positionals
    if (request === undefined)
      throw new UsageError('expected a request id: the header X-Request-Id of the answer')
    const texts = textsOf({ ...values, request })
    const query = { ...queryOf(texts), singly: true }
    return ask({ texts, query, folders, nothing: 'No record has this request id' }, values, terminal, WORDS)
  },
}

export const openVerb: Subcommand = {
  usage: 'open [DIR…]',
  summary: 'Show intents without an outcome: calls that were cut off, and those under way',
  options: [...BY_TIME, ...ASKING],
  run(args, terminal) {
    const { month, from, until } = FILTERS
    const { values, positionals: folders } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { month, from, until, ...FORMATS, ...ORDER },
    })
    const texts = textsOf({ ...values, outcome: 'open' })
    return ask({ texts, query: queryOf(texts), folders, nothing: 'No intent is open' }, values, terminal)
  },
}
