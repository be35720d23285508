/** Prints the answer to a question about the trail: as a table, as words, as CSV or as lines of JSON. */
import { whyNoTrail } from '../../audit/read/segments.ts'
import { type AuditRow, type Progress, type ScanEnd, TrailReadError, type UncoveredTime } from '../../contracts/audit-query.ts'
import { cleanLine } from '../../kernel/clean-text.ts'
import { cellsOf, CSV_HEAD, csvRow, HEADS, recordText, visible } from '../../operator/audit-text.ts'
import { OperationError } from '../../operator/errors.ts'
import { type ProgressBar, progressBar } from '../../operator/progress.ts'
import { printAll, type Terminal } from '../../operator/terminal.ts'
import { countOf, rowLines } from '../../operator/text.ts'
import { EXIT, UsageError } from '../../operator/verb.ts'
import type { CallOptions } from '../call-options.ts'
import { type AnswerPart, fromFiles, fromTrail, type Question } from './answer.ts'
import { signedUntil } from './signed-until.ts'
import { readAudited } from './trail-folder.ts'

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
export const WORDS: Format = { head: '', rows: (rows) => rows.map(recordText) }
const CSV: Format = { head: CSV_HEAD, rows: (rows) => rows.map(csvRow) }

const jsonText = (row: AuditRow): string => cleanLine(JSON.stringify(row))
const JSONL: Format = { head: '', rows: (rows) => rows.map((row) => `${jsonText(row)}\n`) }
const JSON_LIST: Format = {
  ...{ head: '[', tail: '\n]\n' },
  rows: (rows, first) => rows.map((row, at) => `${first && at === 0 ? '\n' : ',\n'}${jsonText(row)}`),
}

const EXPORTS = { csv: CSV, json: JSON_LIST, jsonl: JSONL } as const

export type FormatFlags = { readonly [Name in keyof typeof EXPORTS]?: boolean | undefined }

const namedFormats = (flags: FormatFlags): readonly Format[] =>
  (['csv', 'json', 'jsonl'] as const).filter((name) => flags[name] === true).map((name) => EXPORTS[name])

/** Records that leave the trail for a file are an export. */
export const isExport = (flags: FormatFlags): boolean => namedFormats(flags).length > 0

/** @throws UsageError if several are named */
export function formatOf(flags: FormatFlags, otherwise = TABLE): Format {
  const [format = otherwise, ...more] = namedFormats(flags)
  if (more.length > 0) throw new UsageError('expected one of --csv, --json and --jsonl')
  return format
}

export interface Inquiry {
  readonly question: Question
  /** Folders of copies. Without any, the trail of the configuration. */
  readonly folders: readonly string[]
  readonly options: CallOptions
  readonly format: Format
  /** Said where nothing was found. */
  readonly nothing: string
}

/** What the trail has not of the time that was asked for: whether anything was done then is not known. */
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

/** Asks, and prints the answer. The promise gives the exit code. */
export async function showAnswer(inquiry: Inquiry, terminal: Terminal): Promise<number> {
  const bar = progressBar(terminal)
  const shown = new Shown(inquiry, bar)
  try {
    const source = sourceOf(inquiry, terminal, bar)
    if (source === undefined) return EXIT.refused
    await printAll(shown.texts(source.answer), terminal)
    bar.clear()
    if (shown.isEnded)
      terminal.stderr.write(shown.summary(await signedUntil(source.folders, inquiry.folders)))
    return shown.isWhole && !shown.isUncovered ? EXIT.done : EXIT.failed
  } catch (thrown) {
    bar.clear()
    if (!(thrown instanceof TrailReadError || thrown instanceof OperationError)) throw thrown
    terminal.stderr.write(`postern: ${visible(thrown.message)}\n`)
    return EXIT.failed
  }
}

interface Source {
  readonly folders: readonly string[]
  readonly answer: AsyncGenerator<AnswerPart>
}

function sourceOf(
  { question, folders, options }: Inquiry,
  terminal: Terminal,
  bar: ProgressBar,
): Source | undefined {
  const onProgress = (progress: Progress): void => bar.show(progress)
  if (folders.length > 0) {
    const trouble = folders.map(whyNoTrail).find((why) => why !== undefined)
    if (trouble !== undefined) throw new TrailReadError(trouble)
    return { folders, answer: fromFiles(folders, question.query, onProgress) }
  }
  const audited = readAudited(options.config, terminal)
  if (audited === undefined) return undefined
  const answer = fromTrail(audited, question, options, { terminal, onProgress })
  return { folders: [audited.plan.folder], answer }
}

class Shown {
  readonly #asked: Inquiry
  readonly #bar: ProgressBar
  #rows = 0
  #end: ScanEnd | undefined

  constructor(asked: Inquiry, bar: ProgressBar) {
    this.#asked = asked
    this.#bar = bar
  }

  async *texts(answer: AsyncIterable<AnswerPart>): AsyncGenerator<string> {
    const { format } = this.#asked
    let head = format.head
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
        yield* format.rows(part.rows, first)
      }
    }
    if (this.#end !== undefined && format.tail !== undefined) yield format.tail
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

  /** @param signed up to when the trail is signed */
  summary(signed: string): string {
    const count = this.#rows === 0 ? this.#asked.nothing : countOf(this.#rows, 'row')
    return `${count}. ${this.#coverage()}${signed}\n${this.#trouble()}`
  }

  #coverage(): string {
    const { uncovered } = this.#end ?? {}
    return uncovered === undefined ? '' : `${coverageText(uncovered)} `
  }

  #trouble(): string {
    const { unreadable = [], unreadableCount = 0 } = this.#end ?? {}
    if (unreadableCount === 0) return ''
    const places = unreadable.map(({ path, offset }) => `  ${visible(path)}, byte ${offset}\n`).join('')
    return `postern: ${countOf(unreadableCount, 'line')} could not be read:\n${places}`
  }
}
