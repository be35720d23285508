/** Prints the answer to a question about the trail: as a table, as words, as CSV or as lines of JSON. */
import { type AuditRow, type Progress, type ScanEnd, TrailReadError } from '../../contracts/audit-query.ts'
import { cleanLine } from '../../kernel/clean-text.ts'
import { AdminTrouble } from '../admin-commands.ts'
import { countOf, EXIT, type Terminal, UsageError } from '../command.ts'
import type { OrderOptions } from '../order-options.ts'
import { printAll, rowLines } from '../terminal.ts'
import { type AnswerPart, fromFiles, fromTrail, type Question } from './answer.ts'
import { CSV_HEAD, csvRow } from './csv-rows.ts'
import { type ProgressBar, progressBar } from './progress.ts'
import { cellsOf, HEADS, recordText, visible } from './row-text.ts'
import { readAudited } from './trail-folder.ts'

/** A way to print rows. `head` is printed first, also where there are no rows. */
interface Format {
  readonly head: string
  readonly rows: (rows: readonly AuditRow[], first: boolean) => Iterable<string>
}

/** Batches of a table are as wide as each needs: all of them at once would have to be held. */
const TABLE: Format = {
  head: '',
  rows: (rows, first) => rowLines(HEADS, rows.map(cellsOf)).slice(first ? 0 : 1),
}
export const WORDS: Format = { head: '', rows: (rows) => rows.map(recordText) }
const CSV: Format = { head: CSV_HEAD, rows: (rows) => rows.map(csvRow) }
const JSONL: Format = { head: '', rows: (rows) => rows.map((row) => `${cleanLine(JSON.stringify(row))}\n`) }

/** For `parseArgs`. */
export const FORMATS = { csv: { type: 'boolean' }, jsonl: { type: 'boolean' } } as const

export interface FormatFlags {
  readonly csv?: boolean | undefined
  readonly jsonl?: boolean | undefined
}

/** Records that leave the trail for a file are an export. */
export const isExport = ({ csv, jsonl }: FormatFlags): boolean => csv === true || jsonl === true

/** @throws UsageError if several are named */
export function formatOf({ csv, jsonl }: FormatFlags, otherwise = TABLE): Format {
  if (csv === true && jsonl === true) throw new UsageError('expected --csv or --jsonl, not both')
  if (csv === true) return CSV
  return jsonl === true ? JSONL : otherwise
}

export interface Inquiry {
  readonly question: Question
  /** Folders of copies. Without any, the trail of the configuration. */
  readonly folders: readonly string[]
  readonly options: OrderOptions
  readonly format: Format
  /** Said where nothing was found. */
  readonly nothing: string
}

/** Asks, and prints the answer. The promise gives the exit code. */
export async function showAnswer(asked: Inquiry, terminal: Terminal): Promise<number> {
  const bar = progressBar(terminal)
  const answer = answerTo(asked, terminal, bar)
  if (answer === undefined) return EXIT.refused
  const shown = new Shown(asked, bar)
  try {
    await printAll(shown.texts(answer), terminal)
    bar.clear()
    terminal.stderr.write(shown.summary)
    return shown.isWhole ? EXIT.done : EXIT.failed
  } catch (thrown) {
    bar.clear()
    if (!(thrown instanceof TrailReadError || thrown instanceof AdminTrouble)) throw thrown
    terminal.stderr.write(`postern: ${thrown.message}\n`)
    return EXIT.failed
  }
}

function answerTo(
  { question, folders, options }: Inquiry,
  terminal: Terminal,
  bar: ProgressBar,
): AsyncGenerator<AnswerPart> | undefined {
  const onProgress = (progress: Progress): void => bar.show(progress)
  if (folders.length > 0) return fromFiles(folders, question.query, onProgress)
  const audited = readAudited(options.config, terminal)
  return audited && fromTrail(audited, question, options, { terminal, onProgress })
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
    if (format.head !== '') yield format.head
    for await (const part of answer) {
      if ('progress' in part) this.#bar.show(part.progress)
      else if ('end' in part) this.#end = part.end
      else {
        this.#bar.clear()
        const first = this.#rows === 0
        this.#rows += part.rows.length
        yield* format.rows(part.rows, first)
      }
    }
  }

  /** Whether every line could be read. */
  get isWhole(): boolean {
    return (this.#end?.unreadableCount ?? 0) === 0
  }

  /** Empty if the reader has seen enough before the end. */
  get summary(): string {
    if (this.#end === undefined) return ''
    const count = this.#rows === 0 ? this.#asked.nothing : countOf(this.#rows, 'row')
    return `${count}. ${WHOLE}\n${this.#trouble()}`
  }

  #trouble(): string {
    const { unreadable = [], unreadableCount = 0 } = this.#end ?? {}
    if (unreadableCount === 0) return ''
    const places = unreadable.map(({ path, offset }) => `  ${visible(path)}, byte ${offset}\n`).join('')
    return `postern: ${countOf(unreadableCount, 'line')} could not be read:\n${places}`
  }
}

/** A question reads records; only the chain tells that none is missing. */
const WHOLE = 'Whether the trail is whole, and up to when it is signed: postern audit verify'
