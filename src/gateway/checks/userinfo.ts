import type { Principal } from '../../contracts/principal.ts'
import { judgeContentType } from '../../http/content-type.ts'
import type { Head } from '../../http/head.ts'
import { declaredBody } from '../../http/head-checks.ts'
import type { RequestTarget } from '../../http/request-target.ts'
import { Fault } from '../../kernel/faults.ts'
import type { Runtime } from '../runtime.ts'

const METHODS = ['GET', 'HEAD', 'POST']
const PATH = '/api/1.0/u/connect/userinfo'

export const isUserinfo = (target: RequestTarget | Fault): boolean =>
  !(target instanceof Fault) && target.path === PATH

/** C6.3.1: method, then `openid`, then Accept, then Content-Type. */
export function judgeUserinfo({ negotiation }: Runtime, head: Head, principal: Principal): void {
  const scopes: ReadonlySet<string> = principal.scopes
  if (!METHODS.includes(head.method)) throw new Fault('method_not_allowed', { allow: METHODS })
  if (!scopes.has('openid')) throw new Fault('insufficient_scope', { scope: 'openid' })
  negotiation.requireJson(head.headers.accept)
  judgeContentType({
    contentType: head.headers['content-type'],
    contentEncoding: head.headers['content-encoding'],
    hasBody: declaredBody(head) !== 0,
  })
}
