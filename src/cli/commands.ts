/** The code of the commands, each imported only when it is used, so that one starts without loading the others. */
import { type NameWithTable, tableOfCommand } from './command-list.ts'
import type { Command, CommandRow } from './line/command.ts'
import { commandOfOperations } from './operations.ts'

/** Commands whose verbs are not operations. */
const LOADS: Readonly<Record<NameWithTable, () => Promise<Command>>> = {
  init: async () => (await import('./init/init.ts')).initCommand,
  check: async () => (await import('./commands/check.ts')).checkCommand,
  serve: async () => (await import('./commands/serve.ts')).serveCommand,
  'hash-password': async () => (await import('./commands/secrets.ts')).hashPasswordCommand,
  completion: async () => (await import('./completion.ts')).completionCommand,
  access: async () => (await import('./commands/access.ts')).accessCommand,
  keys: async () => (await import('./commands/keys.ts')).keysCommand,
  backup: async () => (await import('./commands/backup.ts')).backupCommand,
  'admin-token': async () => (await import('./commands/secrets.ts')).adminTokenCommand,
}

const hasTable = (name: string): name is NameWithTable => Object.hasOwn(LOADS, name)

/** A command, ready to run. */
export async function loadCommand(name: string, row: CommandRow): Promise<Command> {
  const { operations, work } = row
  const others = hasTable(name) ? LOADS[name] : work
  if (operations === undefined && others !== undefined) return others()
  return commandOfOperations(name, (await operations?.()) ?? [], await tableOfCommand(name, row), others)
}
