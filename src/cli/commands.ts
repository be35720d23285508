/** What the commands do, each imported only when it is used, so that one starts without loading the others. */
import { type CommandName, COMMANDS, type NameWithTable, tableOfCommand } from './command-list.ts'
import type { Command } from './command.ts'
import { commandOfOperations } from './operations.ts'

/** Those with verbs that are none of an operation. */
const LOADS: Readonly<Record<NameWithTable, () => Promise<Command>>> = {
  init: async () => (await import('./init/init.ts')).initCommand,
  check: async () => (await import('./check.ts')).checkCommand,
  serve: async () => (await import('./serve.ts')).serveCommand,
  'hash-password': async () => (await import('./secrets.ts')).hashPasswordCommand,
  completion: async () => (await import('./completion.ts')).completionCommand,
  access: async () => (await import('./access.ts')).accessCommand,
  scopes: async () => (await import('./scopes.ts')).scopesCommand,
  diff: async () => (await import('./check.ts')).diffCommand,
  migrate: async () => (await import('./shared-store.ts')).migrateCommand,
  store: async () => (await import('./store-copy.ts')).storeCommand,
  nodes: async () => (await import('./shared-store.ts')).nodesCommand,
  keys: async () => (await import('./keys.ts')).keysCommand,
  backup: async () => (await import('./backup.ts')).backupCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  'admin-token': async () => (await import('./secrets.ts')).adminTokenCommand,
}

const hasTable = (name: CommandName): name is NameWithTable => Object.hasOwn(LOADS, name)

/** A command, ready to run. */
export async function loadCommand(name: CommandName): Promise<Command> {
  const { operations } = COMMANDS[name]
  const others = hasTable(name) ? LOADS[name] : undefined
  if (operations === undefined && others !== undefined) return others()
  return commandOfOperations(name, (await operations?.()) ?? [], await tableOfCommand(name), others)
}
