/** Sends the browser back to the client, with what it asked for or with a refusal. */
import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { type Fault, toFault } from '../../base/kernel/faults.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { describable } from '../steps/answers.ts'
import { seeOther } from '../steps/browser-context.ts'
import { noteCall } from '../dependencies/dependencies.ts'
import type { Step, StepDependencies } from '../steps/endpoint.ts'
import { pageAnswer } from '../pages/layout.ts'
import { formPostPage } from '../pages/notices.ts'
import { type ClientNamed, isMode, onlyValue, type ReturnPath } from './request.ts'

/** How to answer the client, as far as the request can be read at all: errors about the rest need it too. */
export function returnPathOf({ namedClient, form, redirectUri }: ClientNamed): ReturnPath {
  const mode = onlyValue(form, 'response_mode')
  const state = onlyValue(form, 'state')
  return { client: namedClient.name, redirectUri, state, mode: isMode(mode) ? mode : 'query' }
}

/** A registered URI may hold what a header can't. */
const inAscii = (uri: string): string => uri.replace(/[^\x21-\x7e]+/g, encodeURIComponent)

/** Adds to the query that the URI has, if it has one (RFC 6749 §3.1.2). */
export function withQuery(uri: string, params: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(params).toString()
  if (query === '') return inAscii(uri)
  const joint = uri.includes('?') ? (/[?&]$/.test(uri) ? '' : '&') : '?'
  return inAscii(uri) + joint + query
}

/** Sends the browser back to the client, with `iss` always and `state` if it was sent (RFC 9207, C6.2.1). */
export function answerClient(
  back: ReturnPath,
  result: Readonly<Record<string, string>>,
  dependencies: StepDependencies,
): Answer {
  const { client, mode, redirectUri, state } = back
  const params = { ...result, ...(state !== undefined && { state }), iss: dependencies.urls.issuer }
  if (mode === 'query') return seeOther(withQuery(redirectUri, params))
  return pageAnswer(dependencies.theme, formPostPage({ client, redirectUri, params, nonce: newSecret(16) }))
}

/** A refusal on its way to the client (RFC 6749 §4.1.2.1). */
function refuseByRedirect(fault: Fault, context: ClientNamed, dependencies: StepDependencies): Answer {
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
 * Redirects what goes wrong in these steps to the client, whose redirect URI is known. A server error is redirected only with
 * `troublesToo`: a person at one of our pages reads of it on a page, and can try again.
 */
export const redirectingFaults =
  (steps: Step<ClientNamed, Answer>, troublesToo: boolean): Step<ClientNamed, Answer> =>
  async (context, dependencies) => {
    try {
      return await steps(context, dependencies)
    } catch (thrown) {
      const fault = toFault(thrown)
      if (fault.code === 'invalid_request_uri' || (fault.status >= 500 && !troublesToo)) throw fault
      await useUpRefused(fault, context)
      context.attempt.redirectedFault = fault
      if (fault.row.level === 'error')
        noteCall(context.exchange, dependencies, 'error', 'authorization_failed', { cause: fault })
      return refuseByRedirect(fault, context, dependencies)
    }
  }

/** A person's refusal decides over a request that was referred to; so does ours to a person who is logged in. Looking at it does not. */
async function useUpRefused({ code, status }: Fault, { attempt, reference }: ClientNamed): Promise<void> {
  if (reference === undefined || status >= 500) return
  if (code === 'access_denied' || attempt.proven === 'user') await reference.useUp([])
}
