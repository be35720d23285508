/** Changes of clients and users in the store, also while the service runs. */
import { pathText, Report } from '../config/report.ts'
import { readConfiguration, type Configuration } from '../settings/configuration.ts'
import { NO_TRAIL } from '../contracts/audit.ts'
import { ClientEditor } from '../directory/client-editor.ts'
import { compileDirectory } from '../directory/compile.ts'
import { Hasher } from '../directory/hasher.ts'
import { readStoredUser, USER } from '../directory/stored-directory.ts'
import { DirectoryRefusal, type EditingParts } from '../directory/stored-editing.ts'
import { UserEditor } from '../directory/user-editor.ts'
import type { JsonObject } from '../http/json-value.ts'
import type { AuditEvent } from '../kernel/audit-events.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { RelayRecorder } from '../operations/log/log.ts'
import { compileScopes } from '../scopes/config.ts'
import { openState, type State } from '../start/dependencies.ts'
import { openMeasures } from '../start/measures.ts'
import { StoreError } from '../stores/store-error.ts'
import type { OrderOptions } from './order-options.ts'
import { type CommandAct, recorded } from './recorded-act.ts'
import { configurationFile, EXIT, writeReport, type Terminal } from './command.ts'

export interface Editors {
  readonly clients: ClientEditor
  readonly users: UserEditor
}

/** The option of the command for each key of a record, to name it in problems. */
export type OptionNames = Readonly<Record<string, string>>

interface Edit {
  /** `--config`, `--reason` and `--admin-token`, as far as they are given. */
  readonly order: OrderOptions
  /** What is recorded of it. Absent: it changes nothing. */
  readonly act?: DirectoryAct
  readonly options?: OptionNames
  readonly work: (editors: Editors) => Promise<void>
}

/** What is recorded of a change. */
export interface DirectoryAct {
  readonly event: AuditEvent
  /** The client that is changed, or the user: one of both. */
  readonly client?: string
  readonly user?: string
  /** Of a user who is added. */
  readonly subject?: string
  readonly change?: JsonObject
}

/** The directory, opened for a command. */
export interface OpenDirectory {
  readonly configuration: Configuration
  readonly state: State
  readonly editors: Editors
  /** The exit code of a task. If it rejects because something cannot be done, why is written to stderr. */
  readonly explained: (task: () => Promise<number>) => Promise<number>
}

/** Does the work and gives the exit code. A reason why it cannot be done is written to stderr. */
export const editDirectory = ({ order, act, options, work }: Edit, terminal: Terminal): Promise<number> =>
  withDirectory({ order, options }, terminal, async ({ configuration, state, editors, explained }) => {
    const run = (): Promise<number> => explained(async () => work(editors).then(() => EXIT.done))
    if (act === undefined) return run()
    return recorded({ configuration, options: order, terminal }, await actOf(act, state), run)
  })

/** Opens the directory for a task, and gives its exit code. */
export async function withDirectory(
  { order, options = {} }: { readonly order: OrderOptions; readonly options?: OptionNames | undefined },
  terminal: Terminal,
  task: (directory: OpenDirectory) => Promise<number>,
): Promise<number> {
  const file = configurationFile(order.config === undefined ? [] : [order.config], terminal)
  const { configuration, report } = readConfiguration(file, terminal.env)
  if (configuration === undefined || report.failed) {
    writeReport(file, report, terminal)
    return EXIT.refused
  }
  if (configuration.store.kind === 'memory') {
    terminal.stderr.write(
      `postern: ${file}: the store is of kind memory, which only the service itself can change; use sqlite\n`,
    )
    return EXIT.refused
  }
  const directory = new Report()
  const catalogue = compileScopes(configuration.scopes, directory)
  const configured = await compileDirectory(configuration.directory, catalogue, directory, terminal.env)
  if (directory.failed) {
    writeReport(file, directory, terminal)
    return EXIT.refused
  }
  const explained: OpenDirectory['explained'] = (work) =>
    work().catch((thrown: unknown) => explain(thrown, options, terminal))
  return explained(() =>
    withState(configuration, (state) => {
      const editors = editorsOn(state, configuration, { configured, catalogue })
      return task({ configuration, state, editors, explained })
    }),
  )
}

function editorsOn(
  { store, feed, tokenRevoker }: State,
  { directory }: Configuration,
  known: Pick<EditingParts, 'configured' | 'catalogue'>,
): Editors {
  const parts = { store, feed, tokenRevoker, clock: systemClock, ...known }
  const peopleElsewhere = directory.people !== undefined
  return {
    clients: new ClientEditor(parts),
    users: new UserEditor({ ...parts, hasher: new Hasher(), peopleElsewhere }),
  }
}

/** As a record names it. The subject of a user who exists is looked up. */
export async function actOf(
  { event, client, user, subject, change }: DirectoryAct,
  { store }: State,
): Promise<CommandAct> {
  const changed = change && { change }
  if (user === undefined) return { event, on: { kind: 'client', id: client }, ...changed }
  const found = subject === undefined ? await store.find(USER, user) : undefined
  const whose = subject ?? (found && readStoredUser(found.value).record.subject)
  return {
    event,
    on: { kind: 'user', ...(whose !== undefined && { subject: whose }) },
    username: user,
    ...changed,
  }
}

async function withState<T>(configuration: Configuration, work: (state: State) => Promise<T>): Promise<T> {
  const parts = {
    clock: systemClock,
    recorder: new RelayRecorder(),
    audit: NO_TRAIL,
    appended: () => undefined,
    measures: openMeasures(configuration),
  }
  const state = await openState(configuration, parts)
  try {
    return await work(state)
  } finally {
    await state.close()
  }
}

function explain(thrown: unknown, options: OptionNames, { stderr }: Terminal): number {
  if (thrown instanceof DirectoryRefusal) {
    stderr.write(`postern: ${thrown.message}\n`)
    for (const line of linesOf(thrown.report, options)) stderr.write(`  ${line}\n`)
    return thrown.report === undefined ? EXIT.failed : EXIT.refused
  }
  const reason = reasonOf(thrown)
  if (reason === undefined) throw thrown
  stderr.write(`postern: ${reason}\n`)
  return EXIT.failed
}

function reasonOf(thrown: unknown): string | undefined {
  if (thrown instanceof StoreError) return thrown.message
  if (thrown instanceof Fault && thrown.code === 'identity_unavailable')
    return 'The store did not answer in time. The change may have been made: list the entries, then try again if it is missing.'
  return undefined
}

/** The problems of a record by option: `--business  names no business of the directory: "ACNE" — did you mean "ACME"?` */
export function* linesOf(report: Report | undefined, options: OptionNames): Generator<string> {
  for (const { path, message, hint } of report?.problems ?? []) {
    const [key, ...rest] = path
    const option = options[String(key)]
    const inside = rest.filter((part) => typeof part === 'string')
    const where = option === undefined ? pathText(path) : [`--${option}`, ...inside].join(' ')
    yield `${where}  ${message}${hint === undefined ? '' : ` — ${hint}`}`
  }
}
