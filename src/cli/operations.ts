/** Commands that are made from operations: what is typed for each, and how it is carried out. */
import { NO_TRAIL_NOW, OperationError } from '../operate/operation/errors.ts'
import {
  type CommandLine,
  type AdminOperation,
  type OperationAnswer,
  type OperationInput,
  type CommandSession,
  type Typed,
  whoMember,
} from '../operate/operation/operation.ts'
import { jsonText, type Terminal } from '../operate/operation/terminal.ts'
import { EXIT, type Options, type Verb } from '../operate/operation/verb.ts'
import {
  adminUrl,
  type CallOptions,
  checkedReason,
  JSON_ANSWER,
  operatorName,
  ownToken,
  SERVICE_ORDER,
} from './line/call-options.ts'
import { chosenVerb, type Command, type CommandTable, noVerb } from './line/command.ts'
import { type Engine, NothingDone, type CommandPurpose, remoteEngine } from './engine/engine.ts'
import { parse } from './line/options.ts'
import { commandText, startedBy } from './line/started.ts'

/** A command line, and the operation that it is for. */
interface Line {
  readonly operation: AdminOperation
  readonly line: CommandLine
}

/** The verbs of a command among operations, by the word behind its name. */
function linesOf(command: string, operations: readonly AdminOperation[]): ReadonlyMap<string, Line> {
  const lines = operations.flatMap((operation) =>
    (operation.commands ?? []).flatMap((line) =>
      line.words.map((words) => [words, { operation, line }] as const),
    ),
  )
  return new Map(
    lines.flatMap(([words, line]) => {
      const [name, verb = ''] = words.split(' ')
      return name === command ? [[verb, line] as const] : []
    }),
  )
}

/** The options of a command line: its own, then those that many have. */
function optionsOf({ operation, line }: Line): Options {
  const { reason, ...others } = SERVICE_ORDER
  // A command that describes a call uses `--data` for its body.
  const { data, ...withoutFolder } = others
  const reading = line.options['data'] === undefined ? { ...withoutFolder, data } : withoutFolder
  const common =
    operation.runs !== 'service or here' || whoMember(operation) !== undefined
      ? { reason, ...reading }
      : reading
  const answer = line.options['json'] === undefined ? JSON_ANSWER : {}
  return { ...line.options, ...answer, ...common }
}

const verbOf = (line: Line): Verb => ({ ...line.line, options: optionsOf(line) })

/** The table of the verbs of a command that are operations. */
export const tableOf = (command: string, operations: readonly AdminOperation[]): CommandTable => ({
  verbs: Object.fromEntries([...linesOf(command, operations)].map(([verb, line]) => [verb, verbOf(line)])),
})

/**
 * A command whose verbs are operations.
 *
 * @param table all its verbs
 * @param others loads what its other verbs do
 */
export function commandOfOperations(
  command: string,
  operations: readonly AdminOperation[],
  table: CommandTable,
  others?: () => Promise<Command>,
): Command {
  const lines = linesOf(command, operations)
  return {
    async run(args, terminal) {
      const chosen = chosenVerb(table, args)
      if (chosen === undefined) throw noVerb(table, args)
      const line = lines.get(chosen.name)
      if (line !== undefined) return carryOut(line, parse(chosen.verb, chosen.args), terminal)
      const other = await others?.()
      if (other === undefined) throw noVerb(table, args)
      return other.run(args, terminal)
    },
  }
}

type Given = Typed & { readonly values: CallOptions }

/** Puts who gives the order, and why, in its place in the request: where the schemas of the operation have it. */
function withWho(
  operation: AdminOperation,
  input: OperationInput,
  { by, reason }: Readonly<Record<'by' | 'reason', string | undefined>>,
): OperationInput {
  const name = whoMember(operation)
  if (name === undefined) return input
  const who = { [name]: by, reason }
  return operation.query?.[name] === undefined
    ? { ...input, body: { ...who, ...input.body } }
    : { ...input, query: { ...who, ...input.query } }
}

/**
 * Finds what carries the operations of a command out. Rejects with OperationError and NothingDone. With `--admin-url` and an
 * own token no configuration is read: it may be one that nothing can be read of.
 *
 * @throws UsageError
 */
async function openEngine({ operation, options, terminal }: CommandPurpose): Promise<Engine> {
  const own = ownToken(options, terminal)
  const given = adminUrl(options, terminal)
  if (given !== undefined && own !== undefined) return remoteEngine({ address: given, token: own })
  // Only here: a configuration with all its sections is most of what such a command loads.
  const { findEngine } = await import('./engine/find-engine.ts')
  return findEngine({ operation, options, terminal }, { own, given })
}

/** The options that name the service of this command to another one. */
function sameService(options: CallOptions, { env }: Terminal): readonly string[] {
  // It may have been set for this command alone.
  const config = options.config ?? (options['admin-url'] === undefined ? env['POSTERN_CONFIG'] : undefined)
  const given = { ...options, config: config === '' ? undefined : config }
  return (['config', 'admin-url', 'admin-token'] as const).flatMap((name) => {
    const value = given[name]
    return value === undefined ? [] : [`--${name}`, value]
  })
}

/** What is done with all the requests of a command. */
interface Requests {
  readonly session: CommandSession
  /** Closes what was opened, and tells what came of it. */
  readonly close: () => Promise<void>
}

function sessionOf({ operation, line }: Line, given: Given, terminal: Terminal): Requests {
  const { values } = given
  const who = { by: operatorName(terminal), reason: checkedReason(values) }
  const optionsOfCall = line.options['data'] === undefined ? values : { ...values, data: undefined }
  let engine: Promise<Engine> | undefined
  const answer = async <A>(
    requested: AdminOperation,
    input: OperationInput = {},
  ): Promise<OperationAnswer<A>> => {
    engine ??= openEngine({ operation, options: optionsOfCall, terminal })
    return (await (await engine).send(requested, withWho(requested, input, who))) as OperationAnswer<A>
  }
  const session: CommandSession = {
    ...given,
    operation,
    terminal,
    answer,
    send: async <A>(requested: AdminOperation, input?: OperationInput) =>
      (await answer<A>(requested, input)).body,
    trailFolder: async () => (await engine)?.trailFolder,
    commandFor: (words) =>
      commandText(startedBy(terminal), [...words, ...sameService(optionsOfCall, terminal)]),
    show: (shown, text) =>
      void terminal.stdout.write(
        values.json === true ? jsonText(line.json?.(shown as never, given) ?? shown) : text(shown),
      ),
  }
  return {
    session,
    close: async () => {
      const opened = await engine?.catch(() => undefined)
      await opened?.[Symbol.asyncDispose]()
    },
  }
}

const refusalOf = ({ line }: Line, thrown: OperationError) => {
  const error = thrown.error === NO_TRAIL_NOW ? `${NOTHING_CHANGED}${NO_TRAIL_NOW}` : thrown.message
  if (line.refused !== undefined && thrown.error !== NO_TRAIL_NOW) return line.refused(thrown)
  return { message: error, code: line.trouble ?? EXIT.failed }
}

/** As the admin API has it. */
const refusalAsJson = (message: string, { message: whole, error, problems }: OperationError) => ({
  error: message === whole ? error : message,
  ...(problems.length > 0 && { problems }),
})

const NOTHING_CHANGED = 'nothing was changed, because it could not be recorded: '

/** Does what was typed. The promise gives the exit code. */
async function carryOut(line: Line, given: Given, terminal: Terminal): Promise<number> {
  const { operation } = line
  const { input, text = jsonText, exit, run } = line.line
  const { session, close } = sessionOf(line, given, terminal)
  try {
    if (run !== undefined) return await run(session)
    const answer = await session.send<never>(operation, input?.(given))
    session.show(answer, (shown) => text(shown, given))
    return exit?.(answer) ?? EXIT.done
  } catch (thrown) {
    if (thrown instanceof NothingDone) return EXIT.refused
    if (!(thrown instanceof OperationError)) throw thrown
    const { message, code } = refusalOf(line, thrown)
    terminal.stderr.write(`postern: ${message}\n`)
    if (given.values['json'] === true) terminal.stdout.write(jsonText(refusalAsJson(message, thrown)))
    return code
  } finally {
    await close()
  }
}
