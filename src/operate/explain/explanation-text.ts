/** Explanations as people read them on a terminal: of a call, and of a call of the past (C14). */
import {
  type ExplainedCheck,
  type ExplainedSent,
  type Explanation,
  NO_TOKEN,
  type Refusal,
} from '../../base/contracts/calls/explanation.ts'
import type { PastAnswer } from '../watch/past-calls.ts'
import { escapedForTerminal } from '../operation/terminal.ts'
import type { PastCall } from '../../base/contracts/processes/reports.ts'

const COLUMNS = { clause: 8, verdict: 22 }

function verdictOf({ verdict, wouldFailToo, enforced }: ExplainedCheck): string {
  if (verdict !== 'failed') return verdict
  if (wouldFailToo) return 'would fail too'
  return enforced ? 'FAILED' : 'failed, only reported'
}

const checkText = (check: ExplainedCheck): string =>
  `  ${check.clause.padEnd(COLUMNS.clause)}${verdictOf(check).padEnd(COLUMNS.verdict)}${check.title}\n` +
  `  ${' '.repeat(COLUMNS.clause + COLUMNS.verdict)}${escapedForTerminal(check.words)}\n`

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

export const partyText = (client: string, subject: string | undefined): string =>
  subject === undefined ? `machine ${client}` : `client ${client}, subject ${subject}`

function callerText({ caller }: Explanation): string {
  if (caller === undefined) return ''
  const { client, subject, target, by } = caller
  const where = target === undefined ? 'no target' : `target ${target}`
  return `${escapedForTerminal(`  ${partyText(client, subject)}, ${where} (${BY[by]})`)}\n`
}

const BY = {
  token: 'by the token',
  claimed: 'as claimed: no token was verified',
  'refused token': 'as the refused token says',
} as const

export function explanationText(explanation: Explanation): string {
  const { method, path, checks } = explanation
  return [
    `${escapedForTerminal(headline(explanation))}\n`,
    `  ${escapedForTerminal(`${method} ${path}`)}\n`,
    callerText(explanation),
    ...checks.map(checkText),
    explanation.sent === undefined ? '' : `\n${sentText(explanation.sent)}`,
  ].join('')
}

/** As a request is written, so that it can be compared with what a service expects. */
function sentText(sent: ExplainedSent): string {
  if ('unknown' in sent)
    return `what the service would be sent is not known: ${escapedForTerminal(sent.unknown)}\n`
  if ('refusal' in sent) {
    const { status, code, reason, text } = sent.refusal
    return `the service would be sent nothing: ${status} ${code}, reason ${reason}: ${escapedForTerminal(text)}\n`
  }
  const { method, url, others, headers, body = '', bodyBase64 } = sent
  return [
    'the service would be sent:\n',
    `  ${escapedForTerminal(`${method} ${url}`)}\n`,
    ...others.map((other) => `  (or ${escapedForTerminal(other)})\n`),
    ...headers.map((each) => `  ${escapedForTerminal(each)}\n`),
    bodyBase64 === undefined ? '' : `\n  (base64) ${bodyBase64}\n`,
    body === ''
      ? ''
      : `\n${body
          .split(/\r?\n/)
          .map((each) => `  ${escapedForTerminal(each)}\n`)
          .join('')}`,
  ].join('')
}

/** What was decided about a call of the past, as it is answered. */
export type AnsweredPast = Omit<PastAnswer, 'then'> & {
  readonly then: Omit<PastCall, 'at'> & { readonly at?: string | undefined }
}

const line = (text: string | undefined): string =>
  text === undefined ? '' : `  ${escapedForTerminal(text)}\n`

function callerLine({ caller }: Pick<PastCall, 'caller'>): string {
  if (caller === undefined) return line('its token was not verified')
  const { client, subject, issuer, scope, target } = caller
  const of = issuer === undefined ? '' : ` of ${issuer}`
  const what = scope === undefined ? 'its scope is not told' : `scope "${scope}"`
  return line(`${partyText(`${client}${of}`, subject)}, ${target ?? 'no target'}, ${what}`)
}

function thenText(then: AnsweredPast['then']): string {
  const { at, method, path, status, reason, wouldRefuse, detail, accept, contentType, traceId, version } =
    then
  const reported =
    wouldRefuse === undefined ? '' : `, let in by a report-only area in spite of ${wouldRefuse}`
  const when = at === undefined ? '' : `, at ${at}`
  return [
    `then: ${status}${reason === undefined ? '' : ` ${reason}`}${reported}${when}\n`,
    line(`${method} ${path ?? '(a path that is not kept)'}`),
    callerLine(then),
    line(accept === undefined ? undefined : `Accept: ${accept}`),
    line(contentType === undefined ? undefined : `Content-Type: ${contentType}`),
    line(version === undefined ? undefined : `version ${version}`),
    line(traceId === undefined ? undefined : `trace ${traceId}`),
    line(detail),
  ].join('')
}

const SAME = new Map([
  [true, 'the same'],
  [false, 'another decision'],
])

export function pastCallText({ then, now, difference }: AnsweredPast): string {
  const same = difference.same === undefined ? 'not known' : (SAME.get(difference.same) ?? '')
  return [
    thenText(then),
    `difference: ${same}. ${escapedForTerminal(difference.words)}\n`,
    now === undefined ? '' : `\nnow: ${explanationText(now)}`,
  ].join('')
}
