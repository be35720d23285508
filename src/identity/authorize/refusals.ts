import type { Answer } from '../../contracts/exchange.ts'
import { type Fault, toFault } from '../../kernel/faults.ts'
import { describable, refuseAsJson } from '../answers.ts'
import { noteCall } from '../dependencies.ts'
import type { Refusal, StepDependencies, Step } from '../endpoint.ts'
import { pageAnswer } from '../pages/layout.ts'
import { errorPage } from '../pages/notices.ts'
import { answerClient } from './answer-client.ts'
import { type ClientNamed, returnPathOf } from './request.ts'

/** A refusal on its way to the client (RFC 6749 §4.1.2.1). */
export function refuseByRedirect(fault: Fault, context: ClientNamed, dependencies: StepDependencies): Answer {
  const { attempt, exchange } = context
  const error = fault.row.oauth
  const { client, subject } = attempt
  noteCall(exchange, dependencies, 'info', 'authorization_refused', { client, subject, error })
  return answerClient(
    returnPathOf(context),
    { error, error_description: describable(fault.publicText) },
    dependencies,
  )
}

/**
 * What goes wrong in these steps is told to the client, whose redirect URI is known. Our own troubles only if nobody
 * is looking: a person at one of our pages is told on a page, and can try again.
 */
export const redirectingFaults =
  (steps: Step<ClientNamed, Answer>, troublesToo: boolean): Step<ClientNamed, Answer> =>
  async (context, dependencies) => {
    try {
      return await steps(context, dependencies)
    } catch (thrown) {
      const fault = toFault(thrown)
      if (fault.status >= 500 && !troublesToo) throw fault
      context.attempt.redirectedFault = fault
      if (fault.row.level === 'error')
        noteCall(context.exchange, dependencies, 'error', 'authorization_failed', { cause: fault })
      return refuseByRedirect(fault, context, dependencies)
    }
  }

/** As a page; a wrong method as JSON (C6.0). Neither may be kept (C6.2.3). */
export const refuseAsPage: Refusal = (fault, dependencies, id) => {
  if (fault.status === 405) {
    const answer = refuseAsJson(fault, dependencies, id)
    return { ...answer, headers: { ...answer.headers, 'Cache-Control': 'no-store' } }
  }
  const retryAfter = String(fault.facts.retryAfter ?? 5)
  return pageAnswer(
    dependencies.theme,
    errorPage(fault, id, { applications: dependencies.theme.at('/connect/applications') }),
    fault.status === 503 ? { 'Retry-After': retryAfter } : {},
  )
}
