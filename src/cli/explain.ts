/** `postern explain`: asks the running service how it would decide a call, and why (C14.1). */
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import type { Explanation } from '../contracts/explanation.ts'
import { callAdminApi, operatorName } from './admin-commands.ts'
import { type Command, EXIT, type Terminal, UsageError } from './command.ts'
import { explainPast } from './explain-past.ts'
import { checkedReason, SERVICE_ORDER, SERVICE_ORDER_HELP } from './order-options.ts'
import { explanationText } from './explanation-text.ts'

const text = { type: 'string' } as const

const OPTIONS = {
  token: text,
  client: text,
  user: text,
  target: text,
  scope: text,
  header: { ...text, short: 'H', multiple: true },
  data: { ...text, short: 'd' },
  from: text,
  request: text,
  log: text,
  json: { type: 'boolean' },
  ...SERVICE_ORDER,
} as const

const HELP = `Usage: postern explain [OPTIONS] METHOD PATH
       postern explain --request ID | --log -

  Shows whether the running service would let a call in, and each check with what it found. The call is not made:
  nothing reaches a backend, nothing is counted, no token is issued or remembered.

  --token T | @FILE     The access token of the call. @- reads it from standard input, which no process list shows
  --client ID           In place of a token: the client that calls,
  --user NAME           and its user. They have the token that the token endpoint would grant them
  --target T            Its target: b/ACME, or f/ACME/SUPER1
  --scope "A B"         Its scope. Default: the default scope of the client, else all that the client may have
  -H "Name: value"      A header line; several times for several lines
  -d BODY | @FILE       The body. Give its Content-Type by -H
  --from ADDRESS        Where the call comes from. Default: loopback. Behind a trusted proxy, the address of the proxy
  --request ID          In place of METHOD and PATH: the X-Request-Id of one of the last calls, which each process keeps.
                        Shows what was decided then, what would be now, and the difference
  --log -               The same of a line of the log, on standard input. Its client is taken to have the token that
                        it would be given for its user now
  --json                The whole explanation, with all facts
${SERVICE_ORDER_HELP}

  The exit code is 0 if the call is let in, 1 if it is refused, 2 if that could not be told.
  Without a running service, the package export postern/explain tells the same of a configuration file.
`

/** By outcome. Whatever kept the answer away counts as `unknown`. */
const EXITS: Readonly<Record<Explanation['outcome'], number>> = {
  'let in': EXIT.done,
  refused: EXIT.failed,
  unknown: EXIT.refused,
}

/** The bytes that an argument names: itself, `@FILE`, or `@-` for standard input. @throws UsageError */
async function bytesOf(argument: string, { stdin }: Terminal): Promise<Buffer> {
  if (!argument.startsWith('@')) return Buffer.from(argument)
  if (argument === '@-') return buffer(stdin)
  try {
    return await readFile(argument.slice(1))
  } catch (error) {
    throw new UsageError(`${argument}: ${(error as Error).message}`)
  }
}

const parse = (args: readonly string[]) =>
  parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS })

type Parsed = ReturnType<typeof parse>

/** What describes a call that nobody has made, and is not for one of the past. */
const OF_NEW_CALLS = ['token', 'client', 'user', 'target', 'scope', 'header', 'data', 'from'] as const

/** About a call of the past, if one is named. @throws UsageError if another call is described beside it */
function askPast({ values, positionals }: Parsed, terminal: Terminal): Promise<number> | undefined {
  if (values.request === undefined && values.log === undefined) return undefined
  const described = OF_NEW_CALLS.find((name) => values[name] !== undefined)
  if (positionals.length > 0 || described !== undefined)
    throw new UsageError(
      `--request and --log name a call of the past: ${described === undefined ? 'METHOD and PATH are' : `--${described} is`} not for these`,
    )
  return explainPast(values, terminal)
}

async function readQuestion({ values, positionals }: Parsed, terminal: Terminal) {
  const { header, data, token, client, user, target, scope, from } = values
  const [method, path, ...more] = positionals
  if (method === undefined || path === undefined || more.length > 0)
    throw new UsageError('expected a method and a path, such as GET /api/1.0/b/ACME/fund-data/fund-list')
  if (token !== undefined && (values.client !== undefined || values.user !== undefined))
    throw new UsageError('expected --token, or --client and --user: not both')
  const body = {
    ...{ method, path, headers: header, client, user, target, scope, from },
    reason: checkedReason(values),
    token: token === undefined ? undefined : (await bytesOf(token, terminal)).toString().trim(),
    bodyBase64: data === undefined ? undefined : (await bytesOf(data, terminal)).toString('base64'),
    by: operatorName(terminal),
  }
  return { body, values }
}

export const explainCommand: Command = {
  help: HELP,
  async run(args, terminal) {
    const parsed = parse(args)
    const past = askPast(parsed, terminal)
    if (past !== undefined) return past
    const { body, values } = await readQuestion(parsed, terminal)
    const call = { method: 'POST', path: '/explain', body } as const
    return callAdminApi(
      call,
      values,
      terminal,
      (answer: Explanation) =>
        values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : explanationText(answer),
      { of: ({ outcome }: Explanation) => EXITS[outcome], trouble: EXIT.refused },
    )
  },
}
