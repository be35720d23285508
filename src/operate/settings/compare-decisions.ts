import type { ExplainedCheck, Explanation } from '../../base/contracts/calls/explanation.ts'
import { checkOf, stepFaults } from '../../gateway/decide/order.ts'
import type { Difference } from '../watch/past-calls.ts'

interface PastDecision {
  /** The fault that was answered; undefined if there was none. */
  readonly reason: string | undefined
  /** The fault that would have refused it in a report-only area. */
  readonly wouldRefuse: string | undefined
  readonly hasCaller: boolean
}

const LET_IN = 'let in'
const UNKNOWN = 'unknown'

const OF_BODIES = stepFaults('checkBody')
const OF_QUERIES = stepFaults('checkParameters')
/** Decided by the head alone, and so also for a call whose body is not kept. */
const OF_CONTENT_TYPE = 'unsupported_media_type'
const NO_CREDENTIALS = 'no_credentials'
/** Refusals of what came in place of a token, or as one: it is not kept. */
const OF_TOKENS: ReadonlySet<string> = new Set(
  [...stepFaults('authenticate'), ...stepFaults('requireProof')].filter((code) => code !== NO_CREDENTIALS),
)

/** The result of a decision. Faults that came after it (of the backend, of the answer) are not part of it. */
const decided = (reason: string | undefined): string =>
  reason === undefined || checkOf(reason) === undefined ? LET_IN : reason

const firstFailure = ({ checks }: Explanation): ExplainedCheck | undefined =>
  checks.find(({ verdict }) => verdict === 'failed' || verdict === UNKNOWN)

function decidedNow({ outcome, refusal, reportOnly }: Explanation): string {
  if (outcome === UNKNOWN) return UNKNOWN
  return refusal?.reason ?? reportOnly?.wouldRefuse ?? LET_IN
}

function nowOf(reason: string, now: Explanation): string {
  const title = checkOf(reason)?.title
  const check = now.checks.find((each) => each.title === title)
  return check === undefined ? '' : ` ${check.words}`
}

/** Why it cannot be known what would be decided now; undefined if it can. */
function whyUnknown(then: string, hasCaller: boolean, now: Explanation | undefined): string | undefined {
  if (now === undefined) return 'Too little of it is known to ask about it now.'
  const reason = decidedNow(now)
  if (!hasCaller && reason === NO_CREDENTIALS && then !== NO_CREDENTIALS)
    return OF_TOKENS.has(then)
      ? 'Its credentials were refused, and are not kept. What they would be worth now is not known.'
      : 'It would be let in as far as its token, which is not kept.'
  if (OF_QUERIES.has(then)) return 'Its query is not kept, and it was refused for that.'
  if (OF_QUERIES.has(reason)) return 'It would be let in as far as its query, which is not kept.'
  if (OF_BODIES.has(then) && then !== OF_CONTENT_TYPE)
    return 'Its body is not kept, and it was refused for that.'
  if (OF_BODIES.has(reason) && reason !== OF_CONTENT_TYPE)
    return 'It would be let in as far as its body, which is not kept.'
  return reason === UNKNOWN ? `Somebody else would have to tell.${detailOf(firstFailure(now))}` : undefined
}

const detailOf = (check: ExplainedCheck | undefined): string => (check === undefined ? '' : ` ${check.words}`)

function wordsOf(then: string, now: string, explained: Explanation): string {
  if (now === LET_IN && then === LET_IN) return 'It was let in, and would be now.'
  if (now === LET_IN) return `It would be let in now.${nowOf(then, explained)}`
  const why = detailOf(firstFailure(explained))
  if (now === then) return `It would be refused for the same reason.${why}`
  if (then === LET_IN) return `It was let in, and would be refused now.${why}`
  return `It would be refused for another reason now.${why} Of the reason of then:${nowOf(then, explained)}`
}

/**
 * Compares what was decided about a call with what would be decided now (C14.4).
 * @param explained undefined if too little is known of the call to ask about it
 */
export function compareDecisions(past: PastDecision, explained: Explanation | undefined): Difference {
  const then = decided(past.reason ?? past.wouldRefuse)
  const unknown = whyUnknown(then, past.hasCaller, explained)
  if (explained === undefined || unknown !== undefined)
    return { then, now: UNKNOWN, same: undefined, words: unknown ?? '' }
  const now = decidedNow(explained)
  return { then, now, same: then === now, words: wordsOf(then, now, explained) }
}
