/** `postern migrate` and `postern nodes`, and the store that they are for. */
import { systemClock } from '../../base/kernel/clock.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { AddedVerb, CommandParts } from '../../operate/hooks/added-command.ts'
import { printJson, rowLines } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { finish, isUsable, migrate, NEWEST_TABLES, readSchema } from './migrations.ts'
import type { SeenNode } from './node-beat.ts'
import { openPostgresToRead, withLongStatements } from './open.ts'
import { postgresOf, type PostgresSection } from './schema.ts'

type Work = AddedVerb['work']

interface SharedStore {
  readonly configuration: Configuration
  readonly store: PostgresSection
}

/** Does the work on the store of the configuration, if nodes share that. */
export async function onSharedStore(
  { read, terminal }: CommandParts,
  work: (shared: SharedStore) => Promise<number>,
): Promise<number> {
  const found = read()
  if (found === undefined) return EXIT.refused
  const { file, configuration } = found
  const { store } = configuration
  const kind: string = store.kind
  if (isSidecar(configuration) || kind !== 'postgres') {
    const where = isSidecar(configuration) ? 'in the memory of a sidecar' : `of kind ${kind}`
    terminal.stderr.write(`postern: ${file}: the store is ${where}: only one of kind postgres is shared\n`)
    return EXIT.refused
  }
  return work({ configuration, store: postgresOf(store) })
}

/** `postern migrate`: makes the tables, or brings them to the version that this Postern knows. */
export const migrateTables: Work = ({ values }, parts) =>
  onSharedStore(parts, async ({ configuration, store }) => {
    const { terminal, recorded } = parts
    if (values['check'] === true) {
      const state = await withLongStatements(store, readSchema)
      const upToDate = isUsable(state)
      if (values['json'] === true) printJson({ ...state, known: NEWEST_TABLES, upToDate }, terminal)
      else terminal.stdout.write(stateText(state.version, NEWEST_TABLES, upToDate))
      return upToDate ? EXIT.done : EXIT.failed
    }
    const finishes = values['finish'] === true
    return recorded(configuration, { event: 'store.migrated', finish: finishes }, async () => {
      const { before, after, passedOver } = await withLongStatements(store, (link) =>
        finishes ? finish(link) : migrate(link),
      )
      if (values['json'] === true) printJson({ before, after, passedOver }, terminal)
      else {
        terminal.stdout.write(migratedText(before.version, after.version, finishes))
        for (const each of passedOver)
          terminal.stderr.write(
            `postern: the database refused a setting, which nothing depends on: ${each}\n`,
          )
      }
      return EXIT.done
    })
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
export const listNodes: Work = ({ values }, parts) =>
  onSharedStore(parts, async ({ store }) => {
    const { terminal } = parts
    const opened = await openPostgresToRead(store, systemClock)
    try {
      const nodes = await opened.nodes.list()
      const now = await opened.now()
      const configurations = configurationsOf(nodes, now)
      if (values['json'] === true) printJson({ nodes, configurations }, terminal)
      else terminal.stdout.write(nodesText(nodes, now))
      if (configurations.length <= 1) return EXIT.done
      terminal.stderr.write(
        `postern: the nodes have ${configurations.length} different configurations (${configurations.join(', ')}): give them the same, then \`postern reload\` on each\n`,
      )
      return EXIT.failed
    } finally {
      await opened.close()
    }
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
