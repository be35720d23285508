/** The commands of extensions. Imported only where one of them may be meant, because it loads all extensions. */
import { StoreError } from '../state/stores/link/store-error.ts'
import { Fault } from '../base/kernel/faults.ts'
import { KeyError } from '../base/kernel/key-error.ts'
import type { AddedCommand, AddedVerb, CommandParts, GivenWords } from '../operate/hooks/added-command.ts'
import type { Terminal } from '../operate/operation/terminal.ts'
import { EXTENSIONS } from './init/table.ts'
import { type CallOptions, CONFIG, JSON_ANSWER, ORDER } from './line/call-options.ts'
import {
  chosenVerb,
  type Command,
  type CommandRow,
  configurationFile,
  noVerb,
  orTellTrouble,
  writeReport,
} from './line/command.ts'
import { parse } from './line/options.ts'

const tableOf = ({ verbs, notes }: AddedCommand) => ({
  ...(notes && { notes }),
  verbs: Object.fromEntries(
    Object.entries(verbs).map(([name, verb]): [string, AddedVerb] => [
      name,
      { ...verb, options: { ...verb.options, ...JSON_ANSWER, ...(verb.changes ? ORDER : CONFIG) } },
    ]),
  ),
})

async function partsFor(options: CallOptions, terminal: Terminal): Promise<CommandParts> {
  const { SETTINGS, trailOpener } = await import('../serve/start/settings.ts')
  const { hasService } = await import('../serve/parts/data-folder.ts')
  const { unkeptTrailIn } = await import('./engine/operator-here.ts')
  const { recorded } = await import('./engine/recorded-act.ts')
  return {
    terminal,
    hasService,
    unkeptTrail: unkeptTrailIn,
    stores: SETTINGS.added.stores,
    rehost: async (store, configuration) => (await trailOpener?.())?.rehost(store, configuration),
    recorded: (configuration, act, work) => recorded({ configuration, options, terminal }, act, work),
    read: () => {
      const file = configurationFile(options.config, terminal)
      const { configuration, problems } = SETTINGS.read(file, terminal.env)
      if (configuration !== undefined && !problems.failed) return { file, configuration }
      writeReport(file, problems, terminal)
      return undefined
    },
  }
}

const commandOf = (added: AddedCommand): Command => ({
  async run(args, terminal) {
    const table = tableOf(added)
    const chosen = chosenVerb(table, args)
    const verb = table.verbs[chosen?.name ?? '']
    if (chosen === undefined || verb === undefined) throw noVerb(table, args)
    const given = parse(chosen.verb, chosen.args) as GivenWords & { readonly values: CallOptions }
    const parts = await partsFor(given.values, terminal)
    return orTellTrouble([StoreError, KeyError, Fault], () => verb.work(given, parts), terminal)
  },
})

/** In the order of the extensions. */
export const ADDED_COMMANDS: Readonly<Record<string, CommandRow>> = Object.fromEntries(
  EXTENSIONS.flatMap(({ commands = {}, operations }) =>
    Object.entries(commands).map(([name, added]): [string, CommandRow] => [
      name,
      {
        summary: added.summary,
        after: added.after,
        table: () => Promise.resolve(tableOf(added)),
        work: () => Promise.resolve(commandOf(added)),
        ...(operations && { operations }),
        ...(added.order && { verbs: added.order }),
      },
    ]),
  ),
)
