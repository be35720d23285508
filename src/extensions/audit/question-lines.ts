/** The command lines of `postern audit find`, `show` and `open`, and what they print (C12.5). */
import { join } from 'node:path'
import {
  type AuditQuery,
  type AuditRow,
  type ReadProgress,
  ROW_OUTCOMES,
  type ScanEnd,
  TrailReadError,
  type UncoveredTime,
} from '../../base/contracts/records/audit-query.ts'
import { cleanLine } from '../../base/kernel/clean-text.ts'
import { messageOf } from '../../base/kernel/thrown.ts'
import { OperationError } from '../../operate/operation/errors.ts'
import { type CommandLine, commandLine, type CommandSession } from '../../operate/operation/operation.ts'
import { type ProgressBar, progressBar } from '../../operate/operation/progress.ts'
import { BROKEN_OFF } from '../../operate/operation/remote.ts'
import { countOf, printAll, rowLines } from '../../operate/operation/terminal.ts'
import { EXIT, type Options, UsageError } from '../../operate/operation/verb.ts'
import { PUBLIC_KEY_FILE, readPublicKey } from './format/keys.ts'
import { FORMER_ADVICE, isFormer } from './format/former.ts'
import { isSignedLine, MANIFEST_FILE, readManifestEnd } from './format/manifest.ts'
import { readAuditQuery } from './read/query.ts'
import { queryTrail } from './read/read-trail.ts'
import { readRow } from './read/rows.ts'
import { whyNoTrail } from './format/segments.ts'
import { cellsOf, CSV_HEAD, csvRow, HEADS, recordText, visible } from './audit-text.ts'

const WHEN = {
  month: { type: 'string', value: 'MONTH', help: 'All of a month such as 2026-03, in UTC' },
  from: {
    type: 'string',
    value: 'WHEN',
    help: 'From a month, a day or a time with its zone: 2026-03, 2026-03-31, 2026-03-31T18:00Z',
  },
  until: { type: 'string', value: 'WHEN', help: 'Until the end of a month or a day, or until a time' },
} as const satisfies Options

/** The filters of `find`, by the names of the admin API. */
const FILTERS = {
  business: { type: 'string', value: 'CODE', help: 'The business that it was about' },
  fund: { type: 'string', value: 'CODE', help: 'The fund that it was about' },
  user: {
    type: 'string',
    value: 'SUBJECT',
    help: 'Who acted, or whom it is about, by the `sub` of the tokens',
  },
  client: { type: 'string', value: 'ID', help: 'Through which client it came, or which it is about' },
  by: {
    type: 'string',
    value: 'NAME',
    help: 'Who acted, as it was proven: a subject, a client id, the name of an operator',
  },
  action: { type: 'string', value: 'NAME', help: 'fund-detail, or fund-data/fund-detail' },
  event: { type: 'string', value: 'NAME', multiple: true, help: 'token.issued, or user.* for a group' },
  outcome: {
    type: 'string',
    words: ROW_OUTCOMES,
    help: 'How it ended; open: an intent whose outcome is missing',
  },
  request: { type: 'string', value: 'ID', help: 'A request id' },
  changed: { type: 'boolean', help: 'Only what has changed something, or may have (open)' },
  ...WHEN,
} as const satisfies Options

const EXPORTS = {
  csv: { type: 'boolean', help: 'Export as CSV' },
  json: { type: 'boolean', help: 'Export as one list in JSON' },
  jsonl: { type: 'boolean', help: 'Export as one JSON object in a line' },
} as const satisfies Options

const FOLDERS = [{ name: 'FOLDER', kind: 'folder', optional: true, repeated: true }] as const

const NOTES = [
  'With FOLDER it reads copies, or the trails of several nodes, and leaves no record. Without, it asks the service of the configuration, which records who asks; while no service runs it reads the files itself, and leaves the record.',
]

/** Nobody finds alice by her name: the trail knows her `sub` only. */
const NOT_BY_NAME =
  'No record fits (a user is named by the `sub` of the tokens, not by the name that is typed)'

export const QUESTION_LINES: readonly CommandLine[] = [
  commandLine({
    words: ['audit find'],
    summary: 'Show who did what: all records that fit all filters, and a call as one row',
    notes: NOTES,
    arguments: FOLDERS,
    options: { ...FILTERS, ...EXPORTS },
    examples: [
      {
        line: 'postern audit find --business ACME --fund SUPER1 --changed --month 2026-03',
        does: 'show who changed something of a fund in a month',
      },
      {
        line: 'postern audit find --event token.issued --client acme-books --csv',
        does: 'export for a spreadsheet',
      },
    ],
    run: (session) => {
      const { values, positionals: folders } = session
      const nothing = values.user === undefined && values.by === undefined ? 'No record fits' : NOT_BY_NAME
      return showAnswer(session, { texts: textsOf(values), folders, nothing })
    },
  }),
  commandLine({
    words: ['audit show'],
    summary: 'Show every record of one request, in order, with all that it holds',
    notes: NOTES,
    arguments: [{ name: 'REQUEST-ID' }, ...FOLDERS],
    options: { ...WHEN, ...EXPORTS },
    examples: [
      {
        line: 'postern audit show 7c8b40a1f5d24a0e9c1d7f3b2a6e5d4c',
        does: 'by the header X-Request-Id of the answer',
      },
    ],
    run: (session) => {
      const { values, positionals } = session
      const [request = '', ...folders] = positionals
      const texts = textsOf({ ...values, request })
      const nothing = 'No record has this request id'
      return showAnswer(session, { texts, folders, nothing, singly: true, otherwise: WORDS })
    },
  }),
  commandLine({
    words: ['audit open'],
    summary: 'Show intents without an outcome: calls that were cut off, and those under way',
    notes: NOTES,
    arguments: FOLDERS,
    options: { ...WHEN, ...EXPORTS },
    examples: [{ line: 'postern audit open', does: 'show calls whose outcome is unknown' }],
    run: (session) => {
      const { values, positionals: folders } = session
      const texts = textsOf({ ...values, outcome: 'open' })
      return showAnswer(session, { texts, folders, nothing: 'No intent is open' })
    },
  }),
]

/** The filters as the admin API takes them. */
function textsOf(
  values: Readonly<Record<string, string | boolean | readonly string[] | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.keys(FILTERS).flatMap((name) => {
      const value = values[name]
      return value === undefined ? [] : [[name, Array.isArray(value) ? value.join(',') : String(value)]]
    }),
  )
}

/** A way to print rows. */
interface Format {
  /** Printed first, also where there are no rows. */
  readonly head: string
  /** Printed behind the last row, if nothing broke off. */
  readonly tail?: string
  readonly rows: (rows: readonly AuditRow[], first: boolean) => Iterable<string>
}

/** Batches of a table are as wide as each needs: all of them at once would have to be held. */
const TABLE: Format = {
  head: '',
  rows: (rows, first) => rowLines(HEADS, rows.map(cellsOf)).slice(first ? 0 : 1),
}
const WORDS: Format = { head: '', rows: (rows) => rows.map(recordText) }

const lineOf = (row: AuditRow): string => cleanLine(JSON.stringify(row))

const FORMATS: Readonly<Record<keyof typeof EXPORTS, Format>> = {
  csv: { head: CSV_HEAD, rows: (rows) => rows.map(csvRow) },
  json: {
    head: '[',
    tail: '\n]\n',
    rows: (rows, first) => rows.map((row, at) => `${first && at === 0 ? '\n' : ',\n'}${lineOf(row)}`),
  },
  jsonl: { head: '', rows: (rows) => rows.map((row) => `${lineOf(row)}\n`) },
}

interface Question {
  /** The filters as they were written. */
  readonly texts: Readonly<Record<string, string>>
  /** Folders of copies. Without any, the trail of the service. */
  readonly folders: readonly string[]
  /** Said where nothing was found. */
  readonly nothing: string
  readonly singly?: boolean
  /** How rows that are no export are printed. Default: as a table. */
  readonly otherwise?: Format
}

/** Asks, and prints the answer. Resolves with the exit code. @throws UsageError if a filter cannot be read */
async function showAnswer(
  { values, terminal, operation, ...session }: CommandSession<typeof EXPORTS>,
  { texts, folders, nothing, singly = false, otherwise = TABLE }: Question,
): Promise<number> {
  const query = { ...queryOf(texts), singly }
  const formats = (['csv', 'json', 'jsonl'] as const).filter((name) => values[name] === true)
  const [name, ...more] = formats
  if (more.length > 0) throw new UsageError('expected one of --csv, --json and --jsonl')
  const bar = progressBar(terminal)
  const shown = new Shown(name === undefined ? otherwise : FORMATS[name], bar)
  // Records that leave the trail for a file are an export.
  const purpose = name === undefined ? 'find' : 'export'
  const input = { query: { ...texts, purpose, singly: String(singly) } }
  try {
    const answer =
      folders.length > 0
        ? fromFolders(folders, query, bar)
        : fromLines(await session.send<AsyncIterable<string>>(operation, input))
    await printAll(shown.texts(answer), terminal)
    bar.clear()
    const signed =
      folders.length > 0 ? await signedUntil(folders, folders) : await signedUntilHere(session.trailFolder())
    if (shown.isEnded) terminal.stderr.write(shown.summary(nothing, signed))
    return shown.isWhole && !shown.isUncovered ? EXIT.done : EXIT.failed
  } catch (thrown) {
    bar.clear()
    if (!(thrown instanceof TrailReadError)) throw thrown
    terminal.stderr.write(`postern: ${visible(thrown.message)}\n`)
    return EXIT.failed
  }
}

/** @throws UsageError if a filter cannot be read */
function queryOf(texts: Question['texts']): AuditQuery {
  const { query, problems } = readAuditQuery(texts)
  if (problems === undefined) return query
  throw new UsageError(problems.map((problem) => `--${problem.replace('  ', ': ')}`).join('\n  '))
}

/** One part of an answer. The last one is `end`. */
type AnswerPart =
  { readonly rows: readonly AuditRow[] } | { readonly progress: ReadProgress } | { readonly end: ScanEnd }

/** The answer from files, in a thread of this process. Rejects with TrailReadError. */
async function* fromFolders(
  folders: readonly string[],
  query: AuditQuery,
  bar: ProgressBar,
): AsyncGenerator<AnswerPart> {
  const trouble = folders.map(whyNoTrail).find((why) => why !== undefined)
  if (trouble !== undefined) throw new TrailReadError(trouble)
  for await (const step of queryTrail({ folders, query }, (progress) => bar.show(progress)))
    yield step.kind === 'end' ? { end: step } : { rows: step.lines.map(readRow) }
}

type StreamedLine =
  | { readonly row: AuditRow }
  | { readonly progress: ReadProgress }
  | { readonly end: ScanEnd }
  | { readonly failed: string }

/** How many rows are shown at once. */
const BATCH = 256

/** The parts from the answer of the operation. Rejects with TrailReadError or OperationError. */
async function* fromLines(lines: AsyncIterable<string>): AsyncGenerator<AnswerPart> {
  let batch: AuditRow[] = []
  for await (const line of lines) {
    const part = JSON.parse(line) as StreamedLine
    if ('row' in part && batch.push(part.row) < BATCH) continue
    if (batch.length > 0) yield { rows: batch }
    batch = []
    if ('failed' in part) throw new TrailReadError(part.failed)
    if (!('row' in part)) yield part
    if ('end' in part) return
  }
  throw new OperationError(BROKEN_OFF)
}

class Shown {
  readonly #format: Format
  readonly #bar: ProgressBar
  #rows = 0
  #end: ScanEnd | undefined

  constructor(format: Format, bar: ProgressBar) {
    this.#format = format
    this.#bar = bar
  }

  async *texts(answer: AsyncIterable<AnswerPart>): AsyncGenerator<string> {
    let { head } = this.#format
    for await (const part of answer) {
      if (head !== '' && !('progress' in part)) {
        yield head
        head = ''
      }
      if ('progress' in part) this.#bar.show(part.progress)
      else if ('end' in part) this.#end = part.end
      else {
        this.#bar.clear()
        const first = this.#rows === 0
        this.#rows += part.rows.length
        yield* this.#format.rows(part.rows, first)
      }
    }
    if (this.#end !== undefined && this.#format.tail !== undefined) yield this.#format.tail
  }

  /** Whether every line could be read. */
  get isWhole(): boolean {
    return (this.#end?.unreadableCount ?? 0) === 0
  }

  /** Whether the trail has nothing of the time that was asked for. */
  get isUncovered(): boolean {
    return this.#end?.uncovered?.all === true
  }

  /** False if the reader has seen enough before the end. */
  get isEnded(): boolean {
    return this.#end !== undefined
  }

  /**
   * @param nothing said where there is no row
   * @param signed up to when the trail is signed
   */
  summary(nothing: string, signed: string): string {
    const { uncovered, unreadable = [], unreadableCount = 0 } = this.#end ?? {}
    const count = this.#rows === 0 ? nothing : countOf(this.#rows, 'row')
    const coverage = uncovered === undefined ? '' : `${coverageText(uncovered)} `
    const places = unreadable.map(({ path, offset }) => `  ${visible(path)}, byte ${offset}\n`).join('')
    const trouble =
      unreadableCount === 0
        ? ''
        : `postern: ${countOf(unreadableCount, 'line')} could not be read:\n${places}`
    return `${count}. ${coverage}${signed}\n${trouble}`
  }
}

/** The part of the requested time that the trail does not have: it is not known whether anything was done then. */
function coverageText({ all, begins, removedFrom }: UncoveredTime): string {
  if (begins === undefined)
    return 'The trail has nothing of the time that was asked for: it has no record yet, or that time has not come.'
  const nothing = all ? 'It has nothing of the time that was asked for' : 'It has nothing of the time before'
  const why =
    removedFrom === undefined
      ? ''
      : `: what was kept since ${visible(removedFrom)} was removed when its retention had ended`
  return `The trail begins at ${visible(begins)}. ${nothing}${why}.`
}

/** The rest of the manifest, the chains and the anchors are not looked at here. */
const VERIFY = 'Whether the trail is whole: postern audit verify'

/** Up to when the trail is signed; for a trail on another machine, nobody knows it here. */
async function signedUntilHere(folder: Promise<string | undefined>): Promise<string> {
  const found = await folder
  return found === undefined ? VERIFY : signedUntil([found], [])
}

/**
 * Up to when trails are signed, by a quick look at the ends of their manifests (C12.4.4), and what tells more.
 *
 * @param named those that were named on the command line: the trail of the configuration needs no name
 */
async function signedUntil(folders: readonly string[], named: readonly string[]): Promise<string> {
  const sentences: string[] = []
  for (const folder of folders) {
    const found = await lastSignature(folder)
    sentences.push(folders.length > 1 ? `${visible(folder)}: ${found}` : found)
  }
  return [`${sentences.join('. ')}. ${VERIFY}`, ...named.map(visible)].join(' ')
}

async function lastSignature(folder: string): Promise<string> {
  try {
    if (isFormer(folder)) return `This is ${FORMER_ADVICE}`
    const { last } = await readManifestEnd(join(folder, MANIFEST_FILE))
    if (last === undefined) return 'Nothing is signed yet'
    const fits = isSignedLine(last, await readPublicKey(join(folder, PUBLIC_KEY_FILE)))
    return fits ? `Signed up to ${last.time}` : 'The last signature of the manifest does not fit its key'
  } catch (thrown) {
    return `Up to when it is signed is not known: ${visible(messageOf(thrown))}`
  }
}
