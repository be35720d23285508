/** What the verbs of `postern client|user|business|fund|role` do, for any noun (C11.5.1). */
import type { Problem } from '../../config/problems.ts'
import { type NounName, NOUNS, type Written } from '../../directory/nouns.ts'
import type { DirectoryOrders, RecordAt } from '../../operator/directory-orders.ts'
import { printJson, readPassword, type Terminal } from '../../operator/terminal.ts'
import type { CallOptions } from '../call-options.ts'
import { listRecords } from './list-records.ts'
import { editOptionsOf, givenChanges, givenRecord, optionNames, optionsOf } from './noun-options.ts'
import { onDirectory } from './noun-task.ts'
import { linesOf } from './open-directory.ts'
import { endedLines, endedRows, idLine, recordLines, secretShower } from './record-text.ts'

/** What every verb of the directory is given: options of the noun beside the usual ones. */
interface Given {
  readonly values: Written & CallOptions & { readonly json?: boolean | undefined }
  /** The names of the record. */
  readonly positionals: readonly string[]
}

type Work = (given: Given, terminal: Terminal) => Promise<number>

const write = (lines: readonly string[], { stdout }: Terminal): void => {
  for (const line of lines) stdout.write(line)
}

function warn(noun: NounName, warnings: readonly Problem[], { stderr }: Terminal): void {
  for (const line of linesOf(warnings, optionNames(noun))) stderr.write(`postern: ${line} (warning)\n`)
}

/** What is printed of a new record. A client with a secret was shown already. */
function showAdded({ noun, names }: RecordAt, record: Written, terminal: Terminal): void {
  if (noun === 'client') {
    terminal.stdout.write(idLine(names[0] ?? ''))
    return
  }
  const subject = noun === 'user' ? ` with the subject ${String(record['subject'])}` : ''
  terminal.stdout.write(`${names.join('/')}: added${subject}\n`)
}

const add =
  (noun: NounName): Work =>
  async ({ values, positionals: names }, terminal) => {
    const named = Object.fromEntries(NOUNS[noun].names.map((member, index) => [member, names[index]]))
    const given = givenRecord(optionsOf(noun), values)
    const secrets = noun === 'user' ? { password: await readPassword(terminal, true) } : {}
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const written = { ...given, ...named, ...secrets }
      const show = secretShower(values.json === true, terminal)
      const { record, secret, warnings } = await directory.add(noun, written, show)
      warn(noun, warnings, terminal)
      if (secret !== undefined) return
      if (values.json === true) printJson({ record }, terminal)
      else showAdded({ noun, names }, record, terminal)
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

const show =
  (noun: NounName): Work =>
  ({ values, positionals: names }, terminal) => {
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const { record } = await directory.show({ noun, names })
      if (values.json === true) printJson(record, terminal)
      else write(recordLines(record), terminal)
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

const edit =
  (noun: NounName): Work =>
  ({ values, positionals: names }, terminal) => {
    const changes = givenChanges(editOptionsOf(noun), values)
    const optionOf = optionNames(noun)
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const { record, changed, ended, warnings } = await directory.edit({ noun, names }, changes)
      warn(noun, warnings, terminal)
      const name = names.join('/')
      const told = changed.map((member) => optionOf[member] ?? member).join(', ')
      if (values.json === true) printJson({ record, changed, ended: endedRows(ended) }, terminal)
      else
        write(
          [
            changed.length === 0 ? `${name}: as it was\n` : `${name}: changed: ${told}\n`,
            ...endedLines(name, ended),
          ],
          terminal,
        )
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

/** `disable`, `enable` and `remove`. */
const onState =
  (noun: NounName, verb: 'disable' | 'enable' | 'remove'): Work =>
  ({ values, positionals: names }, terminal) => {
    const work = async (directory: DirectoryOrders): Promise<void> => {
      const done = await directory[verb]({ noun, names })
      const name = names.join('/')
      if (values.json === true) printJson({ [`${verb}d`]: name }, terminal)
      else write([`${name}: ${verb}d\n`, ...endedLines(name, done?.ended ?? [])], terminal)
    }
    return onDirectory({ noun, order: values, terminal, work })
  }

/** What every verb does that all nouns have. */
export const nounWorks = (noun: NounName) => ({
  ...{ add: add(noun), show: show(noun), edit: edit(noun), list: listRecords(noun) },
  ...{ disable: onState(noun, 'disable'), enable: onState(noun, 'enable'), remove: onState(noun, 'remove') },
})
