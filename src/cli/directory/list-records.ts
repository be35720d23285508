/** `postern NOUN list`. */
import type { Page } from '../../contracts/store.ts'
import { type NounName, NOUNS, type Written } from '../../directory/nouns.ts'
import type { DirectoryOrders } from '../../operator/directory-orders.ts'
import { printAll, printJson, type Terminal } from '../../operator/terminal.ts'
import type { Given } from '../../operator/verb.ts'
import type { BUSINESS } from '../tables/directory.ts'
import { onDirectory } from './noun-task.ts'
import { listLines } from './record-text.ts'

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
  (noun: NounName) =>
  (
    { values, positionals: within }: Given<typeof BUSINESS.verbs.list>,
    terminal: Terminal,
  ): Promise<number> => {
    const { prefix, after, limit = ROWS, all = false, json = false } = values
    const page = { after, limit: Number(limit), ...(prefix !== undefined && { prefix }) }
    const wanted: Wanted = { noun, within, page, json, terminal }
    const work = (directory: DirectoryOrders): Promise<void> =>
      all ? printAll(everyLine(wanted, directory), terminal) : printPage(wanted, directory)
    return onDirectory({ noun, order: values, terminal, work })
  }
