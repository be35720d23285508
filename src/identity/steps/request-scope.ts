import { Fault } from '../../kernel/faults.ts'
import type { GrantChosen, ScopeRequested } from '../context.ts'
import type { Step } from '../endpoint.ts'
import { limitToClient, parseScope } from '../scopes.ts'

/** C6.1.0: scope syntax, catalogue, the client's allowance; without a `scope` the client's default (C5.5). */
export const requestScope: Step<GrantChosen, ScopeRequested> = (context, { catalogue, places }) => {
  const { client, params } = context
  const asked = params.get('scope')?.trim()
  const text = asked === undefined || asked === '' ? client.defaultScope : asked
  if (text === undefined)
    throw new Fault('invalid_scope', {
      say: 'The parameter scope is missing, and this client has no default.',
    })
  const requested = limitToClient(parseScope(text, catalogue), client, catalogue, places)
  return { ...context, requested }
}
