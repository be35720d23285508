import type { Answer } from '../../contracts/exchange.ts'
import type { Client } from '../../contracts/people.ts'
import { newSecret } from '../../kernel/ids.ts'
import { isLoopback } from '../../kernel/listen-address.ts'
import { seeOther } from '../browser/browser-context.ts'
import type { StepDependencies } from '../endpoint.ts'
import { pageAnswer } from '../pages/layout.ts'
import { formPostPage } from '../pages/notices.ts'

/** RFC 8252 §7.3: an app's loopback redirect, by address and not by name; and its port. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::([1-9][0-9]{0,4}))?(?=[/?]|$)/

const withoutPort = (uri: string): string | undefined => {
  const [, host, port = '80'] = LOOPBACK.exec(uri) ?? []
  return host === undefined || Number(port) > 65_535 ? undefined : uri.replace(LOOPBACK, host)
}

/**
 * C6.2.1: compared exactly, character by character: nothing is decoded, folded or resolved (T6). A native app's
 * loopback address may have any port, since the app takes the one it gets.
 */
export function isRegistered(uri: string, registered: readonly string[], { kind }: Client): boolean {
  if (registered.includes(uri)) return true
  const bare = kind === 'public' ? withoutPort(uri) : undefined
  return bare !== undefined && registered.some((each) => withoutPort(each) === bare)
}

/**
 * RFC 8252 §8.6: whether any program on the person's device could have asked under this client's name, and take the
 * code: of a public client, by a loopback address, whatever its port, or by a scheme of the app's own.
 */
export function anyAppMayTake(uri: string, { kind }: Client): boolean {
  if (kind !== 'public') return false
  const { hostname, protocol } = new URL(uri)
  const host = hostname.replace(/^\[|\]$/g, '')
  return !/^https?:$/.test(protocol) || isLoopback(host) || host.endsWith('.localhost')
}

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
