/** Commands that are made from operations: what is typed for each, and how it is carried out. */
import type { CommandLine, Operation, OperationInput, Session, Typed } from '../operator/operation.ts'
import { OperationError, sendTo } from '../operator/remote.ts'
import type { Terminal } from '../operator/terminal.ts'
import { jsonText } from '../operator/text.ts'
import { EXIT, type Options, type Verb } from '../operator/verb.ts'
import { findAdminApi, operatorName } from './admin-commands.ts'
import { type CallOptions, checkedReason } from './call-options.ts'
import type { Command } from './command.ts'
import { parse } from './options.ts'
import { JSON_ANSWER, SERVICE_ORDER } from './tables/order.ts'
import { chosenVerb, type CommandTable, noVerb } from './verbs.ts'

/** A command line, and the operation that it is for. */
interface Line {
  readonly operation: Operation
  readonly line: CommandLine
}

/** The verbs of a command among operations, by the word behind its name. */
function linesOf(command: string, operations: readonly Operation[]): ReadonlyMap<string, Line> {
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

const optionsOf = ({ line }: Line): Options => ({ ...line.options, ...JSON_ANSWER, ...SERVICE_ORDER })

const verbOf = (line: Line): Verb => ({ ...line.line, options: optionsOf(line) })

/** What is typed for those verbs of a command that are operations. */
export const tableOf = (command: string, operations: readonly Operation[]): CommandTable => ({
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
  operations: readonly Operation[],
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

/** Who gives the order and why, in its place in the request: where the schemas of the operation have it. */
function withWho(
  { query = {}, body }: Operation,
  input: OperationInput,
  who: Readonly<Record<'by' | 'reason', string | undefined>>,
): OperationInput {
  if (query['by'] !== undefined) return { ...input, query: { ...who, ...input.query } }
  return body?.properties?.['by'] === undefined ? input : { ...input, body: { ...who, ...input.body } }
}

/** Does what was typed. The promise gives the exit code. */
async function carryOut({ operation, line }: Line, given: Given, terminal: Terminal): Promise<number> {
  const { values } = given
  const who = { by: operatorName(terminal), reason: checkedReason(values) }
  const session: Session = {
    ...given,
    terminal,
    async send<A>(asked: Operation, input: OperationInput = {}): Promise<A> {
      const access = await findAdminApi(values, terminal)
      if (access === undefined) throw new NoService()
      return (await sendTo(access, asked, withWho(asked, input, who)).then((sent) => sent.json())) as A
    },
    show: (answer, text) =>
      void terminal.stdout.write(values.json === true ? jsonText(answer) : text(answer)),
  }
  const { input, text = jsonText, exit, run } = line
  try {
    if (run !== undefined) return await run(session)
    const answer = await session.send<never>(operation, input?.(given))
    session.show(answer, (shown) => text(shown, given))
    return exit?.(answer) ?? EXIT.done
  } catch (thrown) {
    if (thrown instanceof NoService) return EXIT.refused
    if (!(thrown instanceof OperationError)) throw thrown
    terminal.stderr.write(`postern: ${thrown.message}\n`)
    return line.trouble ?? EXIT.failed
  }
}

/** Nothing says where the service is. Why was written. */
class NoService extends Error {}
