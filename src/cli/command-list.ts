/**
 * All commands of `postern`, in the groups of its help, with what help and completion have to know. What they do is
 * loaded by `commands.ts`.
 */
import type { NounName } from '../identity/directory/editors/record-kind.ts'
import { tableOf } from './operations.ts'
import type { CommandRow, CommandTable } from './line/command.ts'

type Rows = Readonly<Record<string, CommandRow>>

const START = {
  init: {
    summary: 'Write a first configuration, with new secrets',
    table: async () => (await import('./init/table.ts')).INIT,
  },
  check: {
    summary: 'Report the problems of a configuration, without serving it',
    table: async () => (await import('./line/tables.ts')).CHECK,
  },
  serve: {
    summary: 'Serve a configuration',
    table: async () => (await import('./line/tables.ts')).SERVE,
  },
  'hash-password': {
    summary: 'Read a password and print its hash, for `directory.users`',
    table: async () => (await import('./line/tables.ts')).HASH_PASSWORD,
  },
  completion: {
    summary: 'Print what makes a shell complete commands and options',
    table: async () => (await import('./line/tables.ts')).COMPLETION,
  },
} as const satisfies Rows

const ACCESS = {
  access: {
    summary: 'Show who may call what, which scopes a call needs, who gains and loses',
    table: async () => (await import('./line/tables.ts')).ACCESS,
  },
  explain: {
    summary: 'Show whether a running service would let a call in, and why not',
    operations: async () => (await import('../operate/explain/explain.ts')).EXPLAIN_OPERATIONS,
  },
  token: {
    summary: 'Print an access token to try a running service with',
    operations: async () => (await import('../operate/explain/test-tokens.ts')).TEST_TOKEN_OPERATIONS,
  },
  try: {
    summary: 'Call a running service as a user, and show why it was let in or refused',
    operations: async () => (await import('../operate/explain/test-tokens.ts')).TEST_TOKEN_OPERATIONS,
  },
} as const satisfies Rows

/** About all verbs of a noun. */
const recordNotes = (noun: NounName): readonly string[] => [
  'What the configuration holds is shown and listed, and changed only in the configuration. A running service follows within a second.',
  ...(noun === 'user'
    ? ['People whom directory.people finds are neither listed nor changed: they live in another system.']
    : []),
]

const RECORD_VERBS = ['add', 'show', 'edit', 'disable', 'enable', 'remove', 'list']

const recordVerbs = (noun: NounName) => ({
  operations: async () => (await import('./record-operations.ts')).operationsOn(noun),
  verbs: [...RECORD_VERBS, 'rotate-secret', 'set-password'],
  notes: recordNotes(noun),
})

const DIRECTORY = {
  client: {
    summary: 'Manage clients in the store',
    ...recordVerbs('client'),
  },
  user: {
    summary: 'Manage users in the store',
    ...recordVerbs('user'),
  },
  business: {
    summary: 'Manage businesses in the store',
    ...recordVerbs('business'),
  },
  fund: {
    summary: 'Manage funds in the store',
    ...recordVerbs('fund'),
  },
  role: {
    summary: 'Manage roles in the store',
    ...recordVerbs('role'),
  },
} as const satisfies Rows

const SERVICE = {
  status: {
    summary: 'Show how it is: what is wrong first',
    operations: async () => [(await import('../operate/service/status.ts')).STATUS],
  },
  configuration: {
    summary: 'Compare its file with what is in force; reload it',
    operations: async () => {
      const { CONFIGURATION_OPERATIONS, RELOAD } = await import('../operate/service/configuration.ts')
      return [...CONFIGURATION_OPERATIONS, RELOAD]
    },
    verbs: ['check', 'diff', 'reload', 'show'],
    notes: [
      'The running service reads its own file; `postern check` and `postern access --against` do it without one. While nothing of the file can be read, give --admin-url and your own token.',
    ],
  },
  reload: {
    summary: 'Make it read its configuration again',
    operations: async () => [(await import('../operate/service/configuration.ts')).RELOAD],
  },
  restart: {
    summary: 'Replace its worker processes, one by one',
    operations: async () => [(await import('../operate/service/service.ts')).RESTART],
  },
  maintenance: {
    summary: 'Close it, or a part of it, and open it again',
    operations: async () => (await import('../operate/service/maintenance.ts')).MAINTENANCE_OPERATIONS,
    verbs: ['on', 'plan', 'off', 'status'],
  },
  lockouts: {
    summary: 'List users whose logins are delayed after failures, or end the delay',
    operations: async () => (await import('../operate/revoke/lockouts.ts')).LOCKOUT_OPERATIONS,
  },
  revoke: {
    summary: 'End sessions, refresh tokens, codes and access tokens',
    operations: async () => (await import('../operate/revoke/revoke.ts')).REVOKE_OPERATIONS,
  },
  sessions: {
    summary: 'List logins in browsers, or end them',
    operations: async () => (await import('../operate/revoke/revocables.ts')).REVOCABLE_OPERATIONS.sessions,
  },
  families: {
    summary: 'List families of refresh tokens, or end them',
    operations: async () => (await import('../operate/revoke/revocables.ts')).REVOCABLE_OPERATIONS.families,
  },
  consents: {
    summary: 'List what users have allowed clients, or end them',
    operations: async () => (await import('../operate/revoke/revocables.ts')).REVOCABLE_OPERATIONS.consents,
  },
} as const satisfies Rows

const KEEPING = {
  store: {
    summary: 'Go on with a store that is older than what was seen of it',
    operations: async () => [(await import('../operate/service/service.ts')).ACCEPT_STORE],
    takesVerbs: true,
  },
  keys: {
    summary: 'List the signing keys, make the next ones, find problems',
    operations: async () => (await import('../operate/service/keys.ts')).KEY_OPERATIONS,
    verbs: ['list', 'rotate', 'doctor', 'rewrap'],
    table: async () => (await import('./line/tables.ts')).KEYS,
  },
  backup: {
    summary: 'Copy the store to a new file, also while it is in use',
    table: async () => (await import('./line/tables.ts')).BACKUP,
  },
  'admin-token': {
    summary: 'Make the token of a named operator',
    table: async () => (await import('./line/tables.ts')).ADMIN_TOKEN,
  },
} as const satisfies Rows

const OWN = { ...START, ...ACCESS, ...DIRECTORY, ...SERVICE, ...KEEPING }

const OWN_ROWS: Rows = OWN

/** The commands of extensions; one that adds verbs to a command of the core's stands in its place. */
async function addedRows(): Promise<Rows> {
  const { ADDED_COMMANDS } = await import('./added-commands.ts')
  const rows = Object.entries(ADDED_COMMANDS).map(([name, row]): [string, CommandRow] => {
    const own = OWN_ROWS[name]
    if (own !== undefined && own.takesVerbs !== true)
      throw new TypeError(`there is a command ${name} already`)
    return [name, { ...own, ...row }]
  })
  return Object.fromEntries(rows)
}

/**
 * Adds each row behind the command of the group that its `after` names. It replaces the core's row of its name.
 *
 * @throws TypeError if no such command is left: help and completion would not have the row
 */
function withAdded(own: Rows, added: Rows): Rows {
  const behind = (place: string | undefined): readonly (readonly [string, CommandRow])[] =>
    Object.entries(added).filter(([, { after }]) => after === place)
  const others = Object.entries(own).filter(([name]) => !Object.hasOwn(added, name))
  const all = Object.fromEntries([...behind(undefined), ...others.flatMap((row) => [row, ...behind(row[0])])])
  const lost = Object.keys(added).find((name) => !Object.hasOwn(all, name))
  if (lost !== undefined)
    throw new TypeError(`there is no "${added[lost]?.after}" behind which "${lost}" could stand`)
  return all
}

/** The commands by group, in the order of the help. */
export async function commandGroups(): Promise<Readonly<Record<string, Rows>>> {
  const added = await addedRows()
  return {
    Start: START,
    'Who has access': ACCESS,
    'Clients, users and places': DIRECTORY,
    'A running service': SERVICE,
    'Keys, store, operators and audit trail': withAdded(KEEPING, added),
  }
}

/** All commands. */
export const allCommands = async (): Promise<Rows> =>
  Object.assign({}, ...Object.values(await commandGroups())) as Rows

const rowIn = (rows: Rows, name: string): CommandRow | undefined =>
  Object.hasOwn(rows, name) ? rows[name] : undefined

/** Undefined if there is no such command. */
export async function findCommand(name: string): Promise<CommandRow | undefined> {
  const own = rowIn(OWN_ROWS, name)
  return own !== undefined && own.takesVerbs !== true ? own : (rowIn(await addedRows(), name) ?? own)
}

/** Commands of earlier versions, and what does the same now. */
export const RETIRED: ReadonlyMap<string, string> = new Map([
  ['scopes', 'postern access METHOD PATH'],
  ['diff', 'postern access --against OLD --config NEW'],
])

/** The commands that have verbs which are none of an operation: `commands.ts` says what those do. */
export type NameWithTable = {
  [Name in keyof typeof OWN]: (typeof OWN)[Name] extends { readonly table: unknown } ? Name : never
}[keyof typeof OWN]

/** The verbs of a command, with what is typed for each. */
export async function tableOfCommand(name: string, row: CommandRow): Promise<CommandTable> {
  const { operations, table, verbs: order, notes = [] } = row
  const own = await table?.()
  const verbs = { ...tableOf(name, (await operations?.()) ?? []).verbs, ...own?.verbs }
  return {
    verbs: order === undefined ? verbs : inOrder(verbs, order),
    notes: [...notes, ...(own?.notes ?? [])],
  }
}

const inOrder = (verbs: CommandTable['verbs'], order: readonly string[]): CommandTable['verbs'] =>
  Object.fromEntries(
    Object.entries(verbs).toSorted(([one], [other]) => order.indexOf(one) - order.indexOf(other)),
  )
