/** The commands about a store that several nodes share: its tables and its nodes. */
import type { SeenNode } from '../../base/contracts/records/store.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { KeyError } from '../../base/kernel/key-error.ts'
import { printJson, rowLines, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { StoreConfig } from '../../state/stores/schema.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { commandOf, configurationFile, orTellTrouble, writeReport } from '../line/command.ts'
import { recorded } from '../engine/recorded-act.ts'
import { MIGRATE, NODES } from '../line/tables.ts'
import { SETTINGS } from '../../serve/start/settings.ts'

export type SharedStoreConfig = StoreConfig & { readonly kind: 'postgres' }

interface Shared {
  readonly configuration: Configuration
  readonly store: SharedStoreConfig
}

/** Does the work on the store of a configuration, if that is shared. Errors are written to stderr. */
export async function onSharedStore(
  config: string | undefined,
  terminal: Terminal,
  work: (shared: Shared) => Promise<number>,
): Promise<number> {
  const file = configurationFile(config, terminal)
  const { configuration, problems } = SETTINGS.read(file, terminal.env)
  if (configuration === undefined || problems.failed) {
    writeReport(file, problems, terminal)
    return EXIT.refused
  }
  const { store } = configuration
  if (isSidecar(configuration) || store.kind !== 'postgres') {
    const kind = isSidecar(configuration) ? 'in the memory of a sidecar' : `of kind ${store.kind}`
    terminal.stderr.write(`postern: ${file}: the store is ${kind}: only one of kind postgres is shared\n`)
    return EXIT.refused
  }
  return orTellTrouble([StoreError, KeyError, Fault], () => work({ configuration, store }), terminal)
}

/** `postern migrate`: makes the tables, or brings them to the version that this Postern knows. */
export const migrateCommand = commandOf(MIGRATE, {
  '': ({ values }, terminal) =>
    onSharedStore(values.config, terminal, async ({ configuration, store }) => {
      const { migrations, open } = await parts()
      if (values.check === true) {
        const state = await open.withLongStatements(store, migrations.readSchema)
        const upToDate = migrations.isUsable(state)
        if (values.json === true) printJson({ ...state, known: migrations.NEWEST_TABLES, upToDate }, terminal)
        else terminal.stdout.write(stateText(state.version, migrations.NEWEST_TABLES, upToDate))
        return upToDate ? EXIT.done : EXIT.failed
      }
      const act = { event: 'store.migrated', finish: values.finish === true } as const
      const order = { configuration, options: values, terminal }
      const work = async (): Promise<number> => {
        const { before, after, passedOver } = await open.withLongStatements(store, (link) =>
          values.finish === true ? migrations.finish(link) : migrations.migrate(link),
        )
        if (values.json === true) printJson({ before, after, passedOver }, terminal)
        else {
          terminal.stdout.write(migratedText(before.version, after.version, values.finish === true))
          for (const each of passedOver)
            terminal.stderr.write(
              `postern: the database refused a setting, which nothing depends on: ${each}\n`,
            )
        }
        return EXIT.done
      }
      return recorded(order, act, work)
    }),
})

/** Loads what speaks to Postgres. */
const parts = async () => ({
  migrations: await import('../../state/stores/postgres/migrations.ts'),
  open: await import('../../state/stores/postgres/open.ts'),
})

const stateText = (version: number, known: number, upToDate: boolean): string => {
  const now = version === 0 ? 'there are no tables' : `the tables are of version ${version}`
  return `${now}, and this Postern knows ${known}: ${upToDate ? 'nothing is to be done' : 'run `postern migrate`'}\n`
}

function migratedText(before: number, after: number, finished: boolean): string {
  if (finished) return `version ${after}: what only older versions used is taken away\n`
  return before === after ? `version ${after}: nothing was to be done\n` : `version ${before} → ${after}\n`
}

/** `postern nodes`: the nodes that share the store, as they reported themselves. */
export const nodesCommand = commandOf(NODES, {
  '': ({ values }, terminal) =>
    onSharedStore(values.config, terminal, async ({ store }) => {
      const { openPostgresToRead } = await import('../../state/stores/postgres/open.ts')
      const opened = await openPostgresToRead(store, systemClock)
      try {
        const nodes = await opened.shared.nodes.list()
        const now = await opened.now()
        const configurations = configurationsOf(nodes, now)
        if (values.json === true) printJson({ nodes, configurations }, terminal)
        else terminal.stdout.write(nodesText(nodes, now))
        if (configurations.length <= 1) return EXIT.done
        terminal.stderr.write(
          `postern: the nodes have ${configurations.length} different configurations (${configurations.join(', ')}): give them the same, then \`postern reload\` on each\n`,
        )
        return EXIT.failed
      } finally {
        await opened.close()
      }
    }),
})

/** How long a node counts as serving after it was last seen, in milliseconds. */
const ALIVE = 10_000

/** The digests of the configurations that are served now. */
const configurationsOf = (nodes: readonly SeenNode[], now: number): readonly string[] => [
  ...new Set(nodes.filter(({ seenAt }) => now - seenAt <= ALIVE).map(({ config }) => config)),
]

const HEADINGS = [
  'NODE',
  'HOST',
  'ADDRESS',
  'VERSION',
  'TABLES',
  'CONFIGURATION',
  'WORKERS',
  'CLOCK',
  'FEED',
  'SEEN',
]

function nodesText(nodes: readonly SeenNode[], now: number): string {
  if (nodes.length === 0) return 'no node was seen within the last hour\n'
  const rows = nodes.map((node) => [
    ...[
      node.id,
      node.host,
      node.address ?? '',
      node.version,
      String(node.schema),
      node.config,
      String(node.workers),
    ],
    `${node.clockOffset > 0 ? '+' : ''}${node.clockOffset.toFixed(3)} s`,
    `${(node.feedAge / 1000).toFixed(1)} s`,
    `${Math.max(0, Math.round((now - node.seenAt) / 1000))} s ago`,
  ])
  return rowLines(HEADINGS, rows).join('')
}
