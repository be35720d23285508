import type { Grant } from '../../contracts/people.ts'
import { Fault } from '../../kernel/faults.ts'
import type { ClientAuthenticated, GrantChosen } from '../context.ts'
import type { Step } from '../endpoint.ts'
import { GRANTS } from './grants.ts'
import { requireParam } from '../steps/require-params.ts'

const isGrant = (name: string): name is Grant => GRANTS.has(name)

/** C6.1.0: grant_type is present, known, and allowed to this client (C6.1.4). */
export const chooseGrant: Step<ClientAuthenticated, GrantChosen> = (context, { clock }) => {
  const grant = requireParam(context.params, 'grant_type')
  const row = GRANTS.get(grant)
  if (row === undefined || !isGrant(grant)) throw new Fault('unsupported_grant_type')
  context.attempt.grant = grant
  const { client } = context
  if (!client.grants.includes(grant) || !row.mayUse(client, clock)) throw new Fault('unauthorized_client')
  return { ...context, grant }
}
