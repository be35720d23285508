/** An explanation as people read it on a terminal. */
import type { ExplainedCheck, Explanation, Refusal } from '../contracts/explanation.ts'
import { printable } from '../operator/text.ts'
import { NO_TOKEN } from '../settings/expectations.ts'

const COLUMNS = { clause: 8, verdict: 22 }

function verdictOf({ verdict, wouldFailToo, enforced }: ExplainedCheck): string {
  if (verdict !== 'failed') return verdict
  if (wouldFailToo) return 'would fail too'
  return enforced ? 'FAILED' : 'failed, only reported'
}

const checkText = (check: ExplainedCheck): string =>
  `  ${check.clause.padEnd(COLUMNS.clause)}${verdictOf(check).padEnd(COLUMNS.verdict)}${check.title}\n` +
  `  ${' '.repeat(COLUMNS.clause + COLUMNS.verdict)}${printable(check.words)}\n`

/** Where the token endpoint would give no token, its public text would mislead: the call itself gets no such answer. */
function refusedText({ status, code, reason, text }: Refusal, checks: readonly ExplainedCheck[]): string {
  if (!NO_TOKEN.some((each) => each === reason))
    return `refused: ${status} ${code}, reason ${reason}: ${text}`
  const failed = checks.find((check) => check.reason === reason)
  return `refused, reason ${reason}: ${failed?.words ?? text}`
}

function headline({ outcome, refusal, kind, reportOnly, checks }: Explanation): string {
  if (kind === 'identity')
    return 'not explained: this is an identity endpoint, and only calls below /api are explained'
  if (refusal !== undefined) return refusedText(refusal, checks)
  const reported = reportOnly?.wouldRefuse
  if (reported !== undefined) return `let in: the area is report-only; else refused, reason ${reported}`
  return outcome === 'unknown' ? 'unknown: it depends on something that was not asked' : outcome
}

function callerText({ caller }: Explanation): string {
  if (caller === undefined) return ''
  const { client, subject, target, by } = caller
  const where = target === undefined ? 'no target' : `target ${target}`
  return `${printable(`  client ${client}, subject ${subject}, ${where} (${BY[by]})`)}\n`
}

const BY = {
  token: 'by the token',
  claimed: 'as claimed: no token was verified',
  'refused token': 'as the refused token says',
} as const

export function explanationText(explanation: Explanation): string {
  const { method, path, checks } = explanation
  return [
    `${printable(headline(explanation))}\n`,
    `  ${printable(`${method} ${path}`)}\n`,
    callerText(explanation),
    ...checks.map(checkText),
  ].join('')
}
