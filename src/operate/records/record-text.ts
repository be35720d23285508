/** The texts that the commands of the directory print of records, and of what a change has ended. */
import { isDeepStrictEqual } from 'node:util'
import type { Written } from '../../identity/directory/editors/editing.ts'
import type { RecordKind } from '../../identity/directory/editors/record-kind.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'
import { OperationError } from '../operation/errors.ts'
import {
  countOf,
  countOfFamilies,
  jsonText,
  escapedForTerminal,
  rowLines,
  type Terminal,
} from '../operation/terminal.ts'

/** A cell of a list. */
type Cell = (record: Written) => string

const textOf = (value: unknown): string => {
  if (typeof value === 'string') return escapedForTerminal(value)
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`
  if (Array.isArray(value)) return value.map(textOf).join(' ')
  if (typeof value !== 'object' || value === null) return ''
  if (isSecret(value)) return '***'
  return Object.entries(value)
    .map(([name, inner]) =>
      isTree(inner) && !isSecret(inner) ? `${name}.${textOf(inner)}` : `${name}=${textOf(inner)}`,
    )
    .join(' ')
}

/** A secret that is stored, and not shown. */
const isSecret = (value: unknown): boolean => isDeepStrictEqual(value, { secret: true })

const isTree = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The cells that are no member. */
const CELLS: Readonly<Record<string, Cell>> = {
  state: ({ disabled, locked }) => (disabled === true ? 'disabled' : locked === true ? 'locked' : 'enabled'),
  secrets: ({ validSecrets, oldSecretEndsAt }) =>
    typeof oldSecretEndsAt === 'string'
      ? `${textOf(validSecrets)}, the old one until ${oldSecretEndsAt.slice(0, 19)}Z`
      : textOf(validSecrets),
}

/** A list below its headings; without them on a page that is not the first. */
export function listLines(
  { columns }: RecordKind,
  rows: readonly Written[],
  isFirst: boolean,
): readonly string[] {
  const cells = rows.map((row) => columns.map((column) => CELLS[column]?.(row) ?? textOf(row[column])))
  const headings = columns.map((column) => column.toUpperCase())
  return rowLines(headings, cells).slice(isFirst ? 0 : 1)
}

/** A record, one member in a line. */
export function recordLines(record: Written): readonly string[] {
  const rows = Object.entries(record).map(([name, value]) => [name, textOf(value)] as const)
  const width = rows.reduce((most, [name]) => Math.max(most, name.length), 0)
  return rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`.trimEnd().concat('\n'))
}

/** A row of what a change has ended: whose it was, and how much of it. */
type EndedRow = Readonly<Record<string, unknown>>

/** `tally: ended what was issued at GLOBEX: 1 family of refresh tokens, 0 codes, and the access tokens` */
export function endedLines(name: string, ended: readonly EndedRow[]): readonly string[] {
  const scopes = ended.flatMap(({ scope }) => (scope === undefined ? [] : [textOf(scope)]))
  const others = ended
    .filter(({ scope }) => scope === undefined)
    .map((row) => tokensText(row) ?? endedText(row))
  const texts = scopes.length > 0 ? [...others, `the access tokens that have ${scopes.join(' or ')}`] : others
  return texts.map((text) => `${name}: ended ${text}\n`)
}

/** What a row has ended that ends access tokens only; undefined for any other. */
function tokensText({ role, fund }: EndedRow): string | undefined {
  if (role !== undefined) return 'the access tokens of the users who have this role'
  return fund === undefined ? undefined : 'the access tokens for this fund'
}

function endedText({ business, client, subject, sessions, families, codes }: EndedRow): string {
  const where =
    business !== undefined
      ? ` at ${textOf(business)}`
      : client !== undefined && subject !== undefined
        ? ` through ${textOf(client)}`
        : ''
  const counts = [
    ...(Number(sessions) > 0 ? [countOf(Number(sessions), 'session')] : []),
    ...[countOfFamilies(Number(families)), countOf(Number(codes), 'code')],
  ]
  return `what was issued${where}: ${counts.join(', ')}, and the access tokens`
}

/**
 * Shows a new secret, the only time and before it is stored; with its client as JSON, or alone. Rejects with OperationError
 * if nobody can have read it. All of it is written at once, so that a reader of one line (`| head -1`) ends nothing.
 */
export async function showSecret(
  secret: string,
  client: Written,
  json: boolean,
  { stdout, stderr }: Terminal,
): Promise<void> {
  const shown = json
    ? jsonText({ record: client, secret })
    : `${idLine(textOf(client['id']))}client_secret  ${secret}\n`
  await new Promise<void>((resolve, reject) => {
    stdout.write(shown, (error) => {
      const why = error && `nothing was stored: the secret could not be shown (${reasonInWords(error)})`
      if (why === undefined || why === null) resolve()
      else reject(new OperationError(why))
    })
  })
  if (!json) stderr.write('The secret is shown only now: the store has only its hash.\n')
}

export const idLine = (id: string): string => `client_id      ${id}\n`

/** The option of the command for each member of a record, to name it in problems. */
type OptionNames = Readonly<Record<string, string>>

const FIRST_KEY = /^[A-Za-z]\w*/
const NEXT_KEY = /^(?:\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\])/

/** The keys behind the first one in a path such as `access.ACME` or `claims["a b"][0]`, without places in lists. */
function innerKeys(path: string): readonly string[] {
  const keys: string[] = []
  for (let rest = path; rest !== '';) {
    const found = NEXT_KEY.exec(rest)
    if (found === null) return [...keys, rest]
    const [all, plain, , quoted] = found
    if (plain !== undefined) keys.push(plain)
    else if (quoted !== undefined) keys.push(JSON.parse(quoted) as string)
    rest = rest.slice(all.length)
  }
  return keys
}

/** A problem of a record by option: `--business  names no business of the directory: "ACNE" — did you mean "ACME"?` */
export function byOption(problem: string, options: OptionNames): string {
  const [path = '', ...message] = problem.split('  ')
  const [member = ''] = FIRST_KEY.exec(path) ?? []
  const option = options[member]
  if (option === undefined) return problem
  return [[`--${option}`, ...innerKeys(path.slice(member.length))].join(' '), ...message].join('  ')
}
