/** `postern audit find`, `show` and `open`: what the trail has recorded (C12.5). */
import { readQuery } from '../../audit/read/query.ts'
import type { AuditQuery, QueryTexts } from '../../contracts/audit-query.ts'
import type { Terminal } from '../../operator/terminal.ts'
import { type Given, UsageError } from '../../operator/verb.ts'
import { type CallOptions, checkedReason } from '../call-options.ts'
import { FILTERS, type FIND, type OPEN, type SHOW } from '../tables/audit.ts'
import { type FormatFlags, formatOf, isExport, showAnswer, WORDS } from './show-answer.ts'

type Texts = Readonly<Record<string, string | boolean | readonly string[] | undefined>>

/** The filters as the admin API takes them. */
function textsOf(values: Texts): Readonly<Record<string, string>> {
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

type Values = CallOptions & FormatFlags

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
const nothingOf = ({ user, by }: Texts): string =>
  user === undefined && by === undefined
    ? 'No record fits'
    : 'No record fits (a user is named by the `sub` of the tokens, not by the name that is typed)'

export function find(
  { values, positionals: folders }: Given<typeof FIND>,
  terminal: Terminal,
): Promise<number> {
  const texts = textsOf(values)
  return ask({ texts, query: queryOf(texts), folders, nothing: nothingOf(values) }, values, terminal)
}

export function show({ values, positionals }: Given<typeof SHOW>, terminal: Terminal): Promise<number> {
  const [request = '', ...folders] = positionals
  const texts = textsOf({ ...values, request })
  const query = { ...queryOf(texts), singly: true }
  return ask({ texts, query, folders, nothing: 'No record has this request id' }, values, terminal, WORDS)
}

export function open(
  { values, positionals: folders }: Given<typeof OPEN>,
  terminal: Terminal,
): Promise<number> {
  const texts = textsOf({ ...values, outcome: 'open' })
  return ask({ texts, query: queryOf(texts), folders, nothing: 'No intent is open' }, values, terminal)
}
