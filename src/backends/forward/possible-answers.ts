/** What a backend that forwards, or a module, may answer: for the description of the API (C11.3). */
import type { PossibleAnswers } from '../../contracts/backend.ts'
import type { FaultCode } from '../../kernel/faults.ts'
import { isBodiless, isSafe } from '../../http/head.ts'
import { OWN_ERROR_STATUSES, STATUS_FAULTS } from './response.ts'

interface AnswerSource {
  readonly method: string
  /** Names of the client's headers that it gets; undefined: all. */
  readonly requestHeaders?: ReadonlySet<string> | undefined
  /** What it fails with besides the statuses that it answers. */
  readonly faults: readonly FaultCode[]
}

/** Of whatever answers with statuses of HTTP, which are judged by `checkStatus`. */
export function answersByStatus({ method, requestHeaders, faults }: AnswerSource): PossibleAnswers {
  const gets = (name: string): boolean => requestHeaders?.has(name) ?? true
  const isRead = isBodiless(method)
  const all = [...new Set([...STATUS_FAULTS, ...faults])]
  return {
    successes: {
      other: true,
      notModified: isRead && (gets('if-none-match') || gets('if-modified-since')),
      precondition: !isSafe(method) && gets('if-match'),
      ranges: isRead && gets('range'),
    },
    faults: all,
    ownErrors: [...OWN_ERROR_STATUSES, ...(all.includes('upstream_unauthorised') ? [401] : [])],
    otherRefusals: true,
    bytes: true,
  }
}
