/** `postern explain`: asks the running service how it would decide a call, and why (C14.1). */
import type { Explanation } from '../contracts/explanation.ts'
import { readBytes, type Terminal } from '../operator/terminal.ts'
import { EXIT, type Given, UsageError } from '../operator/verb.ts'
import { callAdminApi, operatorName } from './admin-commands.ts'
import { checkedReason } from './call-options.ts'
import { explainPast } from './explain-past.ts'
import { explanationText } from './explanation-text.ts'
import { headersWithType } from './make-call.ts'
import { EXPLAIN } from './tables/explain.ts'
import { commandOf } from './verbs.ts'

/** By outcome. Whatever kept the answer away counts as `unknown`. */
const EXITS: Readonly<Record<Explanation['outcome'], number>> = {
  'let in': EXIT.done,
  refused: EXIT.failed,
  unknown: EXIT.refused,
}

type Parsed = Given<(typeof EXPLAIN.verbs)['']>

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
  const [method, path] = positionals
  if (method === undefined || path === undefined)
    throw new UsageError('expected a method and a path, such as GET /api/1.0/b/ACME/fund-data/fund-list')
  if (token !== undefined && (values.client !== undefined || values.user !== undefined))
    throw new UsageError('expected --token, or --client and --user: not both')
  const sent = data === undefined ? undefined : await readBytes(data, terminal)
  const headers = sent === undefined ? header : headersWithType(header ?? [], sent)
  const body = {
    ...{ method, path, headers, client, user, target, scope, from },
    reason: checkedReason(values),
    token: token === undefined ? undefined : (await readBytes(token, terminal)).toString().trim(),
    bodyBase64: sent?.toString('base64'),
    by: operatorName(terminal),
  }
  return { body, values }
}

const EXPLAIN_EXITS = {
  of: ({ outcome }: Explanation) => EXITS[outcome],
  trouble: EXIT.refused,
}

export const explainCommand = commandOf(EXPLAIN, {
  '': async (given, terminal) => {
    const past = askPast(given, terminal)
    if (past !== undefined) return past
    const { body, values } = await readQuestion(given, terminal)
    return callAdminApi(
      { method: 'POST', path: '/explain', body },
      values,
      terminal,
      explanationText,
      EXPLAIN_EXITS,
    )
  },
})
