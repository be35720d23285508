import type { Answer, Exchange } from '../contracts/exchange.ts'
import type { Principal } from '../contracts/principal.ts'
import { stringifyJson } from '../http/json.ts'
import { Fault } from '../kernel/faults.ts'
import type { Runtime } from './runtime.ts'
import { checkContentType } from '../http/media-type.ts'
import { declaredBody, type Head } from '../http/head.ts'

const HEADERS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store, must-revalidate, no-cache, max-age=0',
  Vary: 'Accept',
}

/** C6.3.1: the claims of C5.6 as a bare JSON object. Rejects with what `Resource.describe` rejects with. */
export async function describePrincipal({ userinfo }: Runtime, principal: Principal): Promise<Answer> {
  if (userinfo === undefined) throw new Fault('unknown_action')
  return { status: 200, headers: HEADERS, body: stringifyJson(await userinfo.describe(principal)) }
}

const METHODS = ['GET', 'HEAD', 'POST']
export const USERINFO_PATH = '/api/1.0/u/connect/userinfo'

/** Whether it is a call of userinfo, which has checks of its own. */
export const isUserinfo = ({ userinfo }: Runtime, { target }: Exchange): boolean =>
  userinfo !== undefined && !(target instanceof Fault) && target.path === USERINFO_PATH

/**
 * C6.3.1: the method, then the scope `openid`, then Accept, then Content-Type.
 * @throws Fault `method_not_allowed`, `insufficient_scope`, `not_acceptable`, `unsupported_media_type`
 */
export function checkUserinfo({ negotiation }: Runtime, head: Head, principal: Principal): void {
  const scopes: ReadonlySet<string> = principal.scopes
  if (!METHODS.includes(head.method)) throw new Fault('method_not_allowed', { allow: METHODS })
  if (!scopes.has('openid')) throw new Fault('insufficient_scope', { scope: 'openid' })
  negotiation.requireJson(head.headers.accept)
  checkContentType({
    contentType: head.headers['content-type'],
    contentEncoding: head.headers['content-encoding'],
    hasBody: declaredBody(head) !== 0,
  })
}
