import type { PossibleAnswers } from '../../base/contracts/calls/backend.ts'
import { CONDITIONS_OF_CHANGES } from '../../base/http/head/end-to-end-headers.ts'
import { isSafe } from '../../base/http/head/head.ts'
import type { FaultCode } from '../../base/kernel/faults.ts'
import type { Operation } from '../actions/action-table.ts'
import { BACKEND_CHECK, CHECKS, ENFORCED_STEPS, stepFaults } from '../decide/order.ts'

/** The facts of a deployment that decide which faults its operations can raise. */
export interface Limits {
  readonly clientRate: boolean
  readonly addressRate: boolean
  readonly shedding: boolean
  readonly severalBackends: boolean
  /** Whether tokens may be bound to a key. */
  readonly proofs: boolean
  readonly audited: boolean
}

export interface OperationFacts {
  readonly operation: Pick<
    Operation,
    'method' | 'backend' | 'query' | 'body' | 'produces' | 'consumes' | 'audit'
  >
  readonly answers: PossibleAnswers
  readonly limits: Limits
  /** Whether a parameter of its path has a type. */
  readonly typed: boolean
  readonly reportOnly: boolean
}

type Applies = (facts: OperationFacts) => boolean

const never: Applies = () => false
const takesProofs: Applies = ({ limits }) => limits.proofs
const takesBody: Applies = ({ operation: { body } }) => body.kind !== 'none'
const parses: Applies = ({ operation: { consumes } }) => consumes === undefined
const changes: Applies = ({ operation: { method } }) => !isSafe(method)
const isEnveloped: Applies = ({ operation: { produces } }) => produces === undefined
const dropsConditions = ({ backend: { requestHeaders } }: OperationFacts['operation']): boolean =>
  CONDITIONS_OF_CHANGES.some((name) => requestHeaders?.has(name.toLowerCase()) === false)
/** A call that may have changed something is answered with `outcome_unknown` instead (C8.4a). */
const isRead: Applies = (facts) => isEnveloped(facts) && !changes(facts)
const convertsBytes: Applies = (facts) => isRead(facts) && facts.answers.bytes

/**
 * Which operations a fault can befall. One that is not listed can befall every operation; `never` is for faults of
 * other paths, and for those that no client sees.
 */
const APPLIES: Readonly<Partial<Record<FaultCode, Applies>>> = {
  connect_refused: never,
  outside: never,
  unknown_api_version: never,
  client_gone: never,
  rate_limited: ({ limits }) => limits.clientRate,
  address_rate_limited: ({ limits }) => limits.addressRate,
  overloaded: ({ limits }) => limits.shedding,
  ...Object.fromEntries(Array.from(stepFaults('requireProof'), (code) => [code, takesProofs])),
  too_many_backend_calls: ({ limits }) => limits.severalBackends,
  // A value of the wrong shape is no path of this action (C3.3).
  unknown_action: ({ typed }) => typed,
  unknown_action_version: isEnveloped,
  query_invalid: ({ operation: { query } }) => query !== undefined,
  body_partial: parses,
  body_too_large: parses,
  body_malformed: (facts) => parses(facts) && takesBody(facts),
  body_missing: (facts) => parses(facts) && facts.operation.body.kind === 'required',
  body_unexpected: (facts) => parses(facts) && !takesBody(facts),
  body_invalid: (facts) => parses(facts) && facts.operation.body.schema !== undefined,
  // What follows the checks
  audit_unavailable: ({ operation, limits }) => limits.audited && operation.audit !== undefined,
  unsendable_argument: (facts) => changes(facts) && dropsConditions(facts.operation),
  outcome_unknown: changes,
  answer_unconvertible: isRead,
  answer_unmappable: (facts) => isRead(facts) && facts.operation.backend.xml !== undefined,
  answer_too_large: convertsBytes,
  conversion_busy: (facts) => convertsBytes(facts) || (parses(facts) && takesBody(facts)),
}

/** Faults with which a report-only area refuses a call, too. */
const ENFORCED: ReadonlySet<FaultCode> = new Set([
  ...CHECKS.filter(({ step }) => ENFORCED_STEPS.has(step)).flatMap(({ faults }) => faults),
  'address_rate_limited',
  'overloaded',
  'backend_busy',
])

const OF_CHECKS: readonly FaultCode[] = [
  ...new Set([...CHECKS.flatMap(({ faults }) => faults), ...BACKEND_CHECK.faults]),
]

const BEHIND_CHECKS: readonly FaultCode[] = [
  'unsendable_argument',
  'audit_unavailable',
  'outcome_unknown',
  'answer_unconvertible',
  'answer_unmappable',
  'answer_too_large',
  'conversion_busy',
  'internal',
]

/** In the order of the checks. Operations of one shape get the same list. */
export function faultFinder(): (facts: OperationFacts) => readonly FaultCode[] {
  const known = new Map<string, readonly FaultCode[]>()
  return (facts) => {
    const shape = shapeOf(facts)
    let found = known.get(shape)
    if (found === undefined) known.set(shape, (found = faultsOf(facts)))
    return found
  }
}

/** All that `APPLIES` reads, but for the limits, which are the same for all. */
const shapeOf = ({ operation, answers, typed, reportOnly }: OperationFacts): string =>
  [
    operation.query === undefined,
    operation.body.kind,
    operation.body.schema === undefined,
    operation.produces === undefined,
    operation.consumes === undefined,
    isSafe(operation.method),
    dropsConditions(operation),
    operation.audit === undefined,
    operation.backend.xml === undefined,
    typed,
    reportOnly,
    answers.bytes,
    ...answers.faults,
  ].join()

function faultsOf(facts: OperationFacts): readonly FaultCode[] {
  const applies = (code: FaultCode): boolean => APPLIES[code]?.(facts) ?? true
  const checked = OF_CHECKS.filter(applies)
  return [
    ...new Set([
      ...(facts.reportOnly ? checked.filter((code) => ENFORCED.has(code)) : checked),
      ...facts.answers.faults,
      ...BEHIND_CHECKS.filter(applies),
    ]),
  ]
}
