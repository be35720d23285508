import type { Granted, GrantChosen, UserVerified } from '../context.ts'
import type { Step } from '../endpoint.ts'
import { flow } from '../flow.ts'
import { hasValue, limitToUser } from '../scopes.ts'
import { requestScope } from '../steps/request-scope.ts'
import { requireParams } from '../steps/require-params.ts'
import { verifyPassword } from './verify-password.ts'

const grantScope: Step<UserVerified, Granted> = (context, { catalogue }) => {
  const scope = limitToUser(context.requested, context.user, catalogue)
  const openid = hasValue(scope, 'openid')
  return { ...context, scope, openid, nonce: undefined, refresh: { kind: 'open' } }
}

/** C6.1.5, in the order of C6.1.0. */
export const redeemPassword: Step<GrantChosen, Granted> = flow(
  requireParams<GrantChosen>('username', 'password'),
  requestScope,
  verifyPassword,
  grantScope,
)
