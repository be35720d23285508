import { resolve } from 'node:path'
import { printJson, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import { backUpSqlite } from '../../state/stores/read-store.ts'
import { sqliteFile } from '../../state/stores/schema.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { commandOf, configurationFile, orTellTrouble, writeReport } from '../line/command.ts'
import { recorded } from '../engine/recorded-act.ts'
import { BACKUP } from '../line/tables.ts'
import { SETTINGS, trailFolderOf } from '../../serve/start/settings.ts'

/** A copy: from the data folder to a new file. */
interface Copy {
  readonly data: string
  /** The folder of the audit trail; undefined where none is kept. */
  readonly trail: string | undefined
  readonly file: string
  readonly json: boolean
}

/** @throws StoreError */
function copy({ data, trail, file, json }: Copy, terminal: Terminal): number {
  backUpSqlite(sqliteFile(data), file)
  const keys = resolve(data, 'keys')
  if (json) printJson({ file: resolve(file), without: { keys, ...(trail && { trail }) } }, terminal)
  else
    terminal.stdout.write(
      `${file}: a copy of the store. Only you can read it. The keys are not in it: copy ${keys} too. ` +
        `${trail === undefined ? 'No audit trail is kept' : `Nor is the audit trail: copy ${trail} as a whole`}.\n`,
    )
  return EXIT.done
}

/** The sections that say what is copied, and how that is recorded. Other problems of the file stop no copy. */
const NEEDED: ReadonlySet<unknown> = new Set(['store', 'data', 'audit', 'issuers'])

/** `postern backup FILE [--config FILE]`: copies the store, also while it is in use. */
export const backupCommand = commandOf(BACKUP, {
  '': ({ positionals: [file = ''], values }, terminal) => {
    const path = configurationFile(values.config, terminal)
    const { configuration, problems } = SETTINGS.read(path, terminal.env)
    const isUnread = problems.list.some(
      ({ path: [key], severity }) => severity === 'error' && NEEDED.has(key),
    )
    if (configuration === undefined || isUnread) {
      writeReport(path, problems, terminal)
      return EXIT.refused
    }
    const shared = SETTINGS.added.stores.get(configuration.store.kind)
    if (shared !== undefined) {
      terminal.stderr.write(`postern: ${shared.backup}\n`)
      return EXIT.refused
    }
    const act = { event: 'store.backed_up', file: resolve(file) } as const
    const order = { configuration, options: values, terminal, opensData: true }
    const { data } = configuration
    const folder = trailFolderOf(configuration)
    const trail = folder && resolve(folder)
    const work = (): number => copy({ data, trail, file, json: values.json === true }, terminal)
    return recorded(order, act, () => orTellTrouble([StoreError], work, terminal))
  },
})
