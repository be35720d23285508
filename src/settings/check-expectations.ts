/** Compares what a configuration decides with what a file expects (C14.6). */
import type { ExplainedCheck, Explanation } from '../contracts/explanation.ts'
import { CHECKS } from '../gateway/order.ts'
import type { Expectation } from './expectations.ts'

/** A row whose call is decided otherwise than expected. */
export interface Mismatch {
  /** Its index in the file. */
  readonly row: number
  readonly expected: string
  /** `allowed`, `unknown`, or the reason of the refusal. */
  readonly actual: string
  /** What would change it, in a sentence or two. */
  readonly words: string
}

/** A call as `postern/explain` takes it (start/explainer.ts). */
export interface ExpectedCall {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly from?: string
  readonly client?: string
  readonly user?: string
  readonly target?: string
  readonly scope?: string
}

const MEDIA_TYPE = 'application/json'

/** The call that a row describes. `everything`: the scope of a token that is asked for all there is. */
export function callOf(expectation: Expectation, everything: string): ExpectedCall {
  const { call, client, user, target, scope = everything, accept, body, from } = expectation
  const [method = '', path = ''] = call.split(' ')
  const contentType = expectation.contentType ?? (body === undefined ? undefined : MEDIA_TYPE)
  return {
    ...{ method, path },
    headers: {
      ...(accept !== undefined && { Accept: accept }),
      ...(contentType !== undefined && { 'Content-Type': contentType }),
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    ...(from !== undefined && { from }),
    ...(client !== undefined && user !== undefined && { client, user, scope }),
    ...(target !== undefined && { target: target.replace(/^target:/, '') }),
  }
}

const OF_BODIES: ReadonlySet<string> = new Set(CHECKS.find(({ step }) => step === 'checkBody')?.faults)

/** Whether a row says nothing of a body, so that its call is not judged by one: most rows are about access alone. */
const ignoresBodies = ({ body, contentType, expect }: Expectation): boolean =>
  body === undefined && contentType === undefined && !OF_BODIES.has(expect)

/** In a report-only area that is `allowed`: nothing is refused there. */
function actualOf(expectation: Expectation, { outcome, refusal }: Explanation): string {
  if (outcome === 'unknown') return 'unknown'
  if (refusal === undefined) return 'allowed'
  return ignoresBodies(expectation) && OF_BODIES.has(refusal.reason) ? 'allowed' : refusal.reason
}

/** The check that refuses the call or, of a call that is let in, the one that was expected to. */
function tellingCheck({ expect }: Expectation, { checks }: Explanation): ExplainedCheck | undefined {
  const failed = checks.find(({ verdict }) => verdict === 'failed' || verdict === 'unknown')
  if (expect === 'allowed') return failed
  const clause = CHECKS.find(({ faults }) => faults.some((code) => code === expect))?.clause
  return checks.find((check) => check.clause === clause) ?? failed
}

const sentence = ({ title, words }: ExplainedCheck): string => `${title}: ${words}`

/** Undefined if the call is decided as expected. */
export function compareRow(
  row: number,
  expectation: Expectation,
  explanation: Explanation,
): Mismatch | undefined {
  const actual = actualOf(expectation, explanation)
  if (actual === expectation.expect) return undefined
  const failed = explanation.checks.find(({ verdict }) => verdict === 'failed')
  const told = new Set(
    [failed, tellingCheck(expectation, explanation)].filter((check) => check !== undefined),
  )
  return { row, expected: expectation.expect, actual, words: [...told].map(sentence).join('\n') }
}
