import type { Client, Grant, User } from '../../base/contracts/people/people.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { GrantChosen, Granted, ProofChecked, Step } from '../steps/endpoint.ts'
import { requireParam } from '../steps/read-form.ts'
import { redeemCode } from './authorization-code.ts'
import { redeemClientCredentials } from './client-credentials.ts'
import { redeemPassword } from './password.ts'
import { redeemRefreshToken } from './refresh-token.ts'

interface GrantRow {
  /** Whether a client may use the grant, apart from the list of its record. */
  readonly mayUse: (client: Client, clock: Clock) => boolean
  readonly redeem: Step<GrantChosen, Granted>
}

/** Customers with an agreement on record whose date has come, by the days of UTC (C6.1.5). */
const isBoundCustomer = ({ kind, agreement }: Client, clock: Clock): boolean =>
  kind === 'customer' && agreement !== undefined && Date.parse(agreement) <= clock.now()

export const isMachine = ({ kind }: Client): boolean => kind === 'machine'

/** For clients that act for a person. */
const isForPeople = (client: Client): boolean => !isMachine(client)

export const GRANTS: ReadonlyMap<string, GrantRow> = new Map<Grant, GrantRow>([
  ['password', { mayUse: isBoundCustomer, redeem: redeemPassword }],
  ['authorization_code', { mayUse: isForPeople, redeem: redeemCode }],
  ['refresh_token', { mayUse: isForPeople, redeem: redeemRefreshToken }],
  ['client_credentials', { mayUse: isMachine, redeem: redeemClientCredentials }],
])

/** The grants by which a client can get a first token, for this user if one is given. */
export function firstGrants(client: Client, user: User | undefined, clock: Clock): readonly string[] {
  const isFor = (grant: string): boolean => {
    if (user === undefined) return true
    return grant === 'password' ? user.customers.includes(client.id) : grant !== 'client_credentials'
  }
  return client.grants.filter(
    (grant) => grant !== 'refresh_token' && GRANTS.get(grant)?.mayUse(client, clock) === true && isFor(grant),
  )
}

const isGrant = (name: string): name is Grant => GRANTS.has(name)

/** Requires that grant_type is present, known, and allowed to this client (C6.1.0, C6.1.4). */
export const chooseGrant: Step<ProofChecked, GrantChosen> = (context, { clock }) => {
  const grant = requireParam(context.params, 'grant_type')
  const row = GRANTS.get(grant)
  if (row === undefined || !isGrant(grant)) throw new Fault('unsupported_grant_type')
  context.attempt.grant = grant
  const { client } = context
  if (!client.grants.includes(grant) || !row.mayUse(client, clock)) throw new Fault('unauthorized_client')
  return { ...context, grant }
}
