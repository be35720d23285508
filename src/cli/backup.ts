import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfiguration } from '../settings/configuration.ts'
import { backUpSqlite } from '../stores/backup.ts'
import { sqliteFile } from '../stores/config.ts'
import { StoreError } from '../stores/store-error.ts'
import { ORDER } from './order-options.ts'
import { recorded } from './recorded-act.ts'
import { configurationFile, EXIT, writeReport, type Terminal, UsageError, type Command } from './command.ts'

function copy(data: string, file: string, { stdout, stderr }: Terminal): number {
  try {
    backUpSqlite(sqliteFile(data), file)
  } catch (thrown) {
    if (!(thrown instanceof StoreError)) throw thrown
    stderr.write(`postern: ${thrown.message}\n`)
    return EXIT.failed
  }
  stdout.write(
    `${file}: a copy of the store. Only you can read it. The keys are not in it: copy their folder too.\n`,
  )
  return EXIT.done
}

/** `postern backup FILE [--config FILE]`: copies the store, also while it is in use. */
export const backupCommand: Command = {
  run(args, terminal) {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: ORDER,
    })
    const [file, ...more] = positionals
    if (file === undefined || more.length > 0)
      throw new UsageError('expected one name of a new file for the copy')
    const path = configurationFile(values.config === undefined ? [] : [values.config], terminal)
    const { configuration, report } = readConfiguration(path, terminal.env)
    if (configuration) {
      const act = {
        event: 'store.backed_up',
        on: { kind: 'store' },
        change: { file: resolve(file) },
      } as const
      const order = { configuration, options: values, terminal }
      return recorded(order, act, () => Promise.resolve(copy(configuration.data, file, terminal)))
    }
    writeReport(path, report, terminal)
    return Promise.resolve(EXIT.refused)
  },
}
