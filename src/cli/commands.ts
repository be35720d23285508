/** What the commands do, each imported only when it is used, so that one starts without loading the others. */
import type { CommandName } from './command-list.ts'
import type { Command } from './command.ts'

export const LOADS: Readonly<Record<CommandName, () => Promise<Command>>> = {
  init: async () => (await import('./init.ts')).initCommand,
  check: async () => (await import('./check.ts')).checkCommand,
  serve: async () => (await import('./serve.ts')).serveCommand,
  'hash-password': async () => (await import('./hash-password.ts')).hashPasswordCommand,
  completion: async () => (await import('./completion.ts')).completionCommand,
  access: async () => (await import('./access.ts')).accessCommand,
  scopes: async () => (await import('./scopes.ts')).scopesCommand,
  diff: async () => (await import('./check.ts')).diffCommand,
  explain: async () => (await import('./explain.ts')).explainCommand,
  client: async () => (await import('./directory/commands.ts')).clientCommand,
  user: async () => (await import('./directory/commands.ts')).userCommand,
  business: async () => (await import('./directory/commands.ts')).businessCommand,
  fund: async () => (await import('./directory/commands.ts')).fundCommand,
  role: async () => (await import('./directory/commands.ts')).roleCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  configuration: async () => (await import('./configuration.ts')).configurationCommand,
  reload: async () => (await import('./orders.ts')).reloadCommand,
  restart: async () => (await import('./orders.ts')).restartCommand,
  maintenance: async () => (await import('./maintenance.ts')).maintenanceCommand,
  lockouts: async () => (await import('./orders.ts')).lockoutsCommand,
  revoke: async () => (await import('./orders.ts')).revokeCommand,
  sessions: async () => (await import('./revocables.ts')).sessionsCommand,
  families: async () => (await import('./revocables.ts')).familiesCommand,
  consents: async () => (await import('./revocables.ts')).consentsCommand,
  keys: async () => (await import('./keys.ts')).keysCommand,
  backup: async () => (await import('./backup.ts')).backupCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  'admin-token': async () => (await import('./admin-token.ts')).adminTokenCommand,
}
