/** What the commands of the directory print of records, and of what a change has ended. */
import type { NounName, Written } from '../../directory/nouns.ts'
import type { EndedLoss } from '../../directory/editing.ts'
import { reasonInWords } from '../../kernel/thrown.ts'
import type { ShowSecret } from '../../operator/directory-orders.ts'
import type { Terminal } from '../../operator/terminal.ts'
import { countOf, countOfFamilies, jsonText, printable, rowLines } from '../../operator/text.ts'

/** A cell of a list. */
type Cell = (record: Written) => string

const textOf = (value: unknown): string => {
  if (typeof value === 'string') return printable(value)
  if (typeof value === 'number' || typeof value === 'boolean') return `${value}`
  if (Array.isArray(value)) return value.map(textOf).join(' ')
  if (typeof value !== 'object' || value === null) return ''
  return Object.entries(value)
    .map(([name, inner]) => (isTree(inner) ? `${name}.${textOf(inner)}` : `${name}=${textOf(inner)}`))
    .join(' ')
}

const isTree = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const member =
  (name: string): Cell =>
  (record) =>
    textOf(record[name])

const state: Cell = ({ disabled, locked }) =>
  disabled === true ? 'disabled' : locked === true ? 'locked' : 'enabled'

const secrets: Cell = ({ validSecrets, oldSecretEndsAt }) =>
  typeof oldSecretEndsAt === 'string'
    ? `${textOf(validSecrets)}, the old one until ${oldSecretEndsAt.slice(0, 19)}Z`
    : textOf(validSecrets)

const SOURCE = { SOURCE: member('source'), STATE: state } as const

/** The columns of each list. */
const COLUMNS: Readonly<Record<NounName, Readonly<Record<string, Cell>>>> = {
  client: { ID: member('id'), KIND: member('kind'), ...SOURCE, SECRETS: secrets, NAME: member('name') },
  user: {
    ...{ USERNAME: member('username'), ...SOURCE, CUSTOMERS: member('customers') },
    ...{ ACCESS: member('access'), SUBJECT: member('subject') },
  },
  business: { CODE: member('code'), ...SOURCE, FUNDS: member('funds'), NAME: member('name') },
  fund: { BUSINESS: member('business'), CODE: member('code'), ...SOURCE, NAME: member('name') },
  role: { NAME: member('name'), ...SOURCE, SCOPES: member('scopes') },
}

/** A list below its headings; without them on a page that is not the first. */
export function listLines(noun: NounName, rows: readonly Written[], isFirst: boolean): readonly string[] {
  const columns = COLUMNS[noun]
  const cells = rows.map((row) => Object.values(columns).map((cell) => cell(row)))
  return rowLines(Object.keys(columns), cells).slice(isFirst ? 0 : 1)
}

/** A record, one member in a line. */
export function recordLines(record: Written): readonly string[] {
  const rows = Object.entries(record).map(([name, value]) => [name, textOf(value)] as const)
  const width = rows.reduce((most, [name]) => Math.max(most, name.length), 0)
  return rows.map(([name, text]) => `${name.padEnd(width)}  ${text}`.trimEnd().concat('\n'))
}

/** What has ended, for programs. */
export const endedRows = (ended: readonly EndedLoss[]): readonly object[] =>
  ended.map(({ loss, ended: counts }) => ({ ...loss.tokens, ...counts }))

/** `tally: ended what was issued at GLOBEX: 1 family of refresh tokens, 0 codes, and the access tokens` */
export function endedLines(name: string, ended: readonly EndedLoss[]): readonly string[] {
  const scopes = ended.flatMap(({ loss: { tokens } }) => ('scope' in tokens ? [tokens.scope] : []))
  const others = ended
    .filter(({ loss: { tokens } }) => !('scope' in tokens))
    .map((each) => tokensText(each.loss) ?? endedText(each))
  const texts = scopes.length > 0 ? [...others, `the access tokens that have ${scopes.join(' or ')}`] : others
  return texts.map((text) => `${name}: ended ${text}\n`)
}

/** Of a loss that ends access tokens only; undefined for any other. */
function tokensText({ tokens }: EndedLoss['loss']): string | undefined {
  if ('role' in tokens) return 'the access tokens of the users who have this role'
  return 'fund' in tokens ? 'the access tokens for this fund' : undefined
}

function endedText({ loss: { tokens }, ended: { sessions, families, codes } }: EndedLoss): string {
  const where =
    'business' in tokens
      ? ` at ${tokens.business}`
      : 'client' in tokens && 'subject' in tokens
        ? ` through ${tokens.client}`
        : ''
  const counts = [
    ...(sessions > 0 ? [countOf(sessions, 'session')] : []),
    ...[countOfFamilies(families), countOf(codes, 'code')],
  ]
  return `what was issued${where}: ${counts.join(', ')}, and the access tokens`
}

/** A secret could not be shown, and so it was not stored. */
export class NotShown extends Error {}

/**
 * Shows a new secret, the only time and before it is stored; with its client as JSON, or alone. The promise rejects with
 * NotShown if nobody can have read it. All of it is written at once, so that a reader of one line (`| head -1`) ends nothing.
 */
export const secretShower =
  (json: boolean, { stdout, stderr }: Terminal): ShowSecret =>
  async (secret, client) => {
    const told = json
      ? jsonText({ record: client, secret })
      : `${idLine(textOf(client['id']))}client_secret  ${secret}\n`
    await new Promise<void>((resolve, reject) => {
      stdout.write(told, (error) => {
        if (error) reject(new NotShown(`the secret could not be shown (${reasonInWords(error)})`))
        else resolve()
      })
    })
    if (!json) stderr.write('The secret is shown only now: the store has only its hash.\n')
  }

export const idLine = (id: string): string => `client_id      ${id}\n`
