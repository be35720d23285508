/** `postern NOUN list`. */
import { parseArgs } from 'node:util'
import type { Page } from '../../contracts/store.ts'
import type { NounName, Written } from '../../directory/nouns.ts'
import { NOUNS } from '../../directory/nouns.ts'
import type { DirectoryOrders } from '../../operations/directory-orders.ts'
import { type Subcommand, type Terminal, UsageError } from '../command.ts'
import { printAll, printJson } from '../terminal.ts'
import { JSON_TOO, NAMES, namesOf, onDirectory } from './noun-task.ts'
import { listLines } from './record-text.ts'

const text = { type: 'string' } as const
const OPTIONS = { ...JSON_TOO, prefix: text, after: text, limit: text, all: { type: 'boolean' } } as const

const LIMIT = /^([1-9][0-9]{0,2}|1000)$/
const ROWS = '100'
/** Rows of a page where all are wanted. */
const MOST_ROWS = 1000

interface Wanted {
  readonly noun: NounName
  readonly within: readonly string[]
  readonly page: Page
  readonly json: boolean
  readonly terminal: Terminal
}

async function printPage(wanted: Wanted, directory: DirectoryOrders): Promise<void> {
  const { noun, within, page, json, terminal } = wanted
  const { items, next } = await directory.list(noun, within, page)
  if (json) printJson({ [NOUNS[noun].plural]: items, ...(next !== undefined && { next }) }, terminal)
  else await printAll(listLines(noun, items, true), terminal)
  if (!json && next !== undefined)
    terminal.stderr.write(`postern: more follow: --after ${JSON.stringify(next)}\n`)
}

const jsonLine = (record: Written): string => `${JSON.stringify(record)}\n`

/** The lines of every page. */
async function* everyLine(
  { noun, within, page, json }: Wanted,
  directory: DirectoryOrders,
): AsyncGenerator<string> {
  let after = page.after
  let isFirst = true
  do {
    const { items, next } = await directory.list(noun, within, { ...page, limit: MOST_ROWS, after })
    yield (json ? items.map(jsonLine) : listLines(noun, items, isFirst)).join('')
    after = next
    isFirst = false
  } while (after !== undefined)
}

export const listRecords =
  (noun: NounName): Subcommand['run'] =>
  (args, terminal) => {
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS })
    const within = namesOf(NAMES[noun].slice(0, -1), positionals)
    const { prefix, after, limit = ROWS, all = false, json = false } = values
    if (!LIMIT.test(limit)) throw new UsageError('--limit: expected a number from 1 to 1000')
    const page = { after, limit: Number(limit), ...(prefix !== undefined && { prefix }) }
    const wanted: Wanted = { noun, within, page, json, terminal }
    const work = (directory: DirectoryOrders): Promise<void> =>
      all ? printAll(everyLine(wanted, directory), terminal) : printPage(wanted, directory)
    return onDirectory({ noun, order: values, terminal, work })
  }
