import type { Answer } from '../../contracts/exchange.ts'
import { newSecret } from '../../kernel/ids.ts'
import { seeOther } from '../browser/browser-context.ts'
import type { StepDependencies } from '../endpoint.ts'
import { formPostPage } from '../pages/notices.ts'
import { pageAnswer } from '../pages/layout.ts'

export const RESPONSE_MODES = ['query', 'form_post'] as const
export type ResponseMode = (typeof RESPONSE_MODES)[number]

/** How a client is answered (C6.2.1). */
export interface ReturnPath {
  readonly client: string
  /** One of the client's own. */
  readonly redirectUri: string
  readonly state: string | undefined
  readonly mode: ResponseMode
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
