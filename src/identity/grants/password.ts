import type { GuessingKey } from '../../base/contracts/people/lockouts.ts'
import type { HashOwner, User } from '../../base/contracts/people/people.ts'
import { siteOf } from '../../base/http/head/addresses.ts'
import { epochSeconds } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { orUnavailable } from '../dependencies/dependencies.ts'
import {
  flow,
  type GrantChosen,
  type Granted,
  type ScopeRequested,
  type Step,
  type StepDependencies,
  type UserVerified,
} from '../steps/endpoint.ts'
import { withResource } from '../dependencies/resource.ts'
import { hasValue, limitToClient, limitToUser, parseScope } from '../dependencies/scopes.ts'
import { scopeParameter, requireParam, requireParams } from '../steps/read-form.ts'

/**
 * Reads the requested scope, or the client's default if there is none, and limits it to the client (C6.1.0, C5.5).
 * @throws Fault `invalid_scope`
 */
const requestScope: Step<GrantChosen, ScopeRequested> = async (context, dependencies) => {
  const { catalogue, places } = dependencies
  const { client, params } = context
  const asked = parseScope(scopeParameter(params, client), catalogue)
  const aimed = await withResource(asked, params.get('resource'), client, dependencies)
  const requested = await limitToClient(aimed, client, catalogue, places)
  return { ...context, requested }
}

interface PasswordAttempt {
  readonly key: GuessingKey
  readonly password: string
  readonly mayLogIn: (user: User) => boolean
  /** For the record: who was meant, right or wrong. */
  readonly onNamed?: (subject: string | undefined) => void
}

/**
 * The user whose name (`key.user`) and password were given; undefined if anything is wrong. Exactly one password is
 * verified in any case, so that the time of a wrong password is also that of a locked user, of another customer's, and
 * of none (T3.9). The one way in: all doors count failures here (T3.8).
 */
export async function verifyUser(
  attempt: PasswordAttempt,
  dependencies: StepDependencies,
): Promise<User | undefined> {
  const { people, guessing, networks, passwords } = dependencies
  const named = await orUnavailable(people.findNamed(attempt.key.user))
  attempt.onNamed?.(named?.subject)
  // By the name that the directory has: some take several spellings for one, and each would buy further attempts.
  const key = { ...attempt.key, user: named?.username ?? attempt.key.user }
  const network = await networks.recall(named?.subject, key.network)
  const standing = {
    nameExists: named !== undefined,
    familiar: network.familiar,
    subject: named?.subject,
  }
  return guessing.attempt(key, standing, async () => {
    // Once more: waiting for the turn may have taken minutes, and a user who was locked meanwhile stays out.
    const found = await orUnavailable(people.findUserByName(key.user))
    // A user who may not log in here counts as unknown: the time must not show that the password is right either.
    const user = found !== undefined && attempt.mayLogIn(found) ? found : undefined
    const right = await passwords.verify(attempt.password, user, hashOwnerOf(key))
    if (!right || user === undefined) return undefined
    await network.remember()
    return user
  })
}

/** All users of a customer's client, or all browsers of a site, share half of the queue of hashes. */
const hashOwnerOf = ({ client, network }: GuessingKey): HashOwner => ({
  name: client === '' ? `browsers at ${siteOf(network)}` : `users of ${client}`,
  doubted: false,
})

/** Verifies name and password. The fault is the same for everything that can be wrong (C6.1.5). */
export const verifyPassword: Step<ScopeRequested, UserVerified> = async (context, dependencies) => {
  const { attempt, client, exchange, params } = context
  const username = requireParam(params, 'username')
  attempt.typed = username
  const user = await verifyUser(
    {
      key: { user: username, client: client.id, network: exchange.clientAddress },
      password: requireParam(params, 'password'),
      mayLogIn: ({ customers }) => customers.includes(client.id),
      onNamed: (subject) => {
        attempt.subject = subject
      },
    },
    dependencies,
  )
  if (user === undefined) throw new Fault('invalid_grant')
  attempt.typed = undefined
  return { ...context, user, authTime: epochSeconds(dependencies.clock) }
}

const grantScope: Step<UserVerified, Granted> = (context, { catalogue }) => {
  const scope = limitToUser(context.requested, context.user, catalogue)
  const openid = hasValue(scope, 'openid')
  const words = scopeParameter(context.params, context.client)
  return { ...context, scope, openid, nonce: undefined, refresh: { kind: 'open' }, words }
}

/** The grant `password` (C6.1.5), in the order of C6.1.0. */
export const redeemPassword: Step<GrantChosen, Granted> = flow(
  requireParams<GrantChosen>('username', 'password'),
  requestScope,
  verifyPassword,
  grantScope,
)
