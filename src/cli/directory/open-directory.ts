/** The directory, opened for a command: the service may run meanwhile. */
import { pathText, type Problem, Problems } from '../../config/problems.ts'
import { NO_TRAIL } from '../../contracts/audit.ts'
import { NO_RECORDER } from '../../contracts/recorder.ts'
import { DirectoryRefusal } from '../../directory/editing.ts'
import { systemClock } from '../../kernel/clock.ts'
import { Fault } from '../../kernel/faults.ts'
import type { DirectoryOrders } from '../../operator/directory-orders.ts'
import type { Terminal } from '../../operator/terminal.ts'
import { EXIT } from '../../operator/verb.ts'
import { type Configuration, isSidecar, readConfiguration } from '../../settings/configuration.ts'
import { openConfiguredEditors } from '../../start/configured-editors.ts'
import { type ChangeRecorder, DirectoryControl } from '../../start/directory-control.ts'
import { openMeasures } from '../../start/measures.ts'
import { openState, type State } from '../../start/state.ts'
import { ANSWER_COMMAND_WITHIN } from '../../stores/open-store.ts'
import { StoreError } from '../../stores/store-error.ts'
import { type CallOptions, checkOrder } from '../call-options.ts'
import { configurationFile, writeReport } from '../command.ts'
import { recorded, type RecordedOrder } from '../recorded-act.ts'
import { NotShown } from './record-text.ts'

/** The option of the command for each member of a record, to name it in problems. */
export type OptionNames = Readonly<Record<string, string>>

export interface DirectoryTask {
  readonly order: CallOptions
  readonly options: OptionNames
  readonly work: (directory: DirectoryOrders) => Promise<void>
}

/** Nothing was done, because it could not be recorded. That is told already. */
class NotRecorded extends Error {}

/** Does the work, and gives the exit code. A reason why it cannot be done is written to stderr. */
export async function withDirectory(
  { order, options, work }: DirectoryTask,
  terminal: Terminal,
): Promise<number> {
  checkOrder(order, terminal)
  const file = configurationFile(order.config, terminal)
  const { configuration, problems: report } = readConfiguration(file, terminal.env)
  if (configuration === undefined || report.failed) {
    writeReport(file, report, terminal)
    return EXIT.refused
  }
  const trouble = troubleOf(configuration)
  if (trouble !== undefined) {
    terminal.stderr.write(`postern: ${file}: ${trouble}\n`)
    return EXIT.refused
  }
  const run = async (state: State): Promise<number> => {
    const problems = new Problems()
    const parts = { state, clock: systemClock, environment: terminal.env }
    const editors = await openConfiguredEditors(configuration, parts, problems)
    if (problems.failed) {
      writeReport(file, problems, terminal)
      return EXIT.refused
    }
    const keeper = commandRecorder({ configuration, options: order, terminal })
    await work(new DirectoryControl({ keeper, editors: () => Promise.resolve(editors) }))
    return EXIT.done
  }
  return withState(configuration, run).catch((thrown: unknown) => explain(thrown, options, terminal))
}

function troubleOf(configuration: Configuration): string | undefined {
  if (isSidecar(configuration)) return 'a sidecar has no directory'
  return configuration.store.kind === 'memory'
    ? 'the store is of kind memory, which only the service itself can change: use its admin API, or sqlite'
    : undefined
}

/** Records what the work does, as a command. */
const commandRecorder = (order: RecordedOrder): ChangeRecorder => ({
  async keep<T>(...[act, gives, work]: Parameters<ChangeRecorder['keep']>): Promise<T> {
    const done: { result?: { readonly value: T }; thrown?: { readonly value: unknown } } = {}
    const run = async (): Promise<number> => {
      try {
        done.result = { value: (await work()) as T }
        return EXIT.done
      } catch (thrown) {
        done.thrown = { value: thrown }
        return exitOf(thrown)
      }
    }
    await recorded(order, act, run, gives)
    if (done.thrown !== undefined) throw done.thrown.value
    if (done.result === undefined) throw new NotRecorded()
    return done.result.value
  },
})

const exitOf = (thrown: unknown): number =>
  thrown instanceof DirectoryRefusal && thrown.kind === 'problems' ? EXIT.refused : EXIT.failed

async function withState<T>(configuration: Configuration, work: (state: State) => Promise<T>): Promise<T> {
  const parts = {
    clock: systemClock,
    recorder: NO_RECORDER,
    audit: NO_TRAIL,
    appended: () => undefined,
    measures: openMeasures(configuration),
    answerWithin: ANSWER_COMMAND_WITHIN,
  }
  const state = await openState(configuration, parts)
  try {
    return await work(state)
  } finally {
    await state.close()
  }
}

function explain(thrown: unknown, options: OptionNames, { stderr }: Terminal): number {
  if (thrown instanceof NotRecorded) return EXIT.failed
  if (thrown instanceof DirectoryRefusal) {
    stderr.write(`postern: ${thrown.message}\n`)
    for (const line of linesOf(thrown.problems?.list ?? [], options)) stderr.write(`  ${line}\n`)
    return exitOf(thrown)
  }
  const reason = reasonOf(thrown)
  if (reason === undefined) throw thrown
  stderr.write(`postern: ${reason}\n`)
  return EXIT.failed
}

function reasonOf(thrown: unknown): string | undefined {
  if (thrown instanceof StoreError) return thrown.message
  if (thrown instanceof NotShown) return `nothing was stored: ${thrown.message}`
  if (thrown instanceof Fault && thrown.code === 'identity_unavailable')
    return 'The store did not answer in time. The change may have been made: list the entries, then try again if it is missing.'
  return undefined
}

/** The problems of a record by option: `--business  names no business of the directory: "ACNE" — did you mean "ACME"?` */
export function* linesOf(problems: readonly Problem[], options: OptionNames): Generator<string> {
  for (const { path, message, hint } of problems) {
    const [key, ...rest] = path
    const option = options[String(key)]
    const inside = rest.filter((part) => typeof part === 'string')
    const where = option === undefined ? pathText(path) : [`--${option}`, ...inside].join(' ')
    yield `${where}  ${message}${hint === undefined ? '' : ` — ${hint}`}`
  }
}
