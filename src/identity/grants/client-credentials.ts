import type { GrantChosen, Granted, Step } from '../steps/endpoint.ts'
import { withResource } from '../dependencies/resource.ts'
import { limitToMachine, parseScope } from '../dependencies/scopes.ts'
import { scopeParameter } from '../steps/read-form.ts'

/** A machine asks for itself: nobody has logged in, and nothing outlasts the token (C6.1.5a, RFC 6749 §4.4). */
export const redeemClientCredentials: Step<GrantChosen, Granted> = async (context, dependencies) => {
  const { catalogue, places } = dependencies
  const { client, params } = context
  const words = scopeParameter(params, client)
  const resource = params.get('resource')
  const asked = await withResource(parseScope(words, catalogue), resource, client, dependencies)
  const scope = await limitToMachine(asked, client, catalogue, places)
  return { ...context, scope, openid: false, nonce: undefined, refresh: { kind: 'none' }, words }
}
