import type { Client, ClientAuthMethod } from '../../base/contracts/people/people.ts'
import { type ClientPair, parseBasic } from '../../base/http/head/authorization.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { orUnavailable } from '../dependencies/dependencies.ts'
import type { ClientAuthenticated, Parsed, ProofChecked, Step, StepDependencies } from './endpoint.ts'
import type { AddedMethod } from '../dependencies/client-security.ts'

/**
 * Authenticates the client (C6.1.2).
 * @throws Fault `invalid_client` for every failure, so that nobody learns whether the id or the secret was wrong;
 *   `oauth_bad_request` for two client ids or two methods
 */
export const authenticateClient: Step<Parsed, ClientAuthenticated> = async (context, dependencies) => {
  const { attempt, exchange, params } = context
  const basic = parseBasic(exchange.head, dependencies)
  const pairs: readonly ClientPair[] = basic.kind === 'pairs' ? basic.pairs : []
  const added = dependencies.security.methods.find((each) => each.isUsed(params))
  attempt.typed = pairs[0]?.id ?? params.get('client_id') ?? added?.namedIn(params)
  const method = added === undefined ? methodOf(basic.kind, params) : onlyMethod(added, basic.kind, params)
  const where = { dependencies, address: exchange.clientAddress }
  const found = await counted(method, dependencies, () =>
    added === undefined
      ? AUTHENTICATE[method as CoreMethod](params, where, pairs).then((client) => ({ client }))
      : added.authenticate(context),
  )
  const { client } = found
  Object.assign(attempt, { client: client.id, typed: undefined, asker: client })
  if (client.kind !== 'public') attempt.proven = 'client'
  return { ...context, ...found, method }
}

type Params = Parsed['params']

interface Where {
  readonly dependencies: StepDependencies
  readonly address: string
}

type Authenticate = (params: Params, where: Where, pairs: readonly ClientPair[]) => Promise<Client>

type BasicKind = ReturnType<typeof parseBasic>['kind']

/** @throws Fault `oauth_bad_request` where a secret comes too (RFC 6749 §2.3) */
function onlyMethod({ name }: AddedMethod, basic: BasicKind, params: Params): ClientAuthMethod {
  if (basic !== 'none' || params.has('client_secret')) throw twoMethods()
  return name
}

/** The method that the request uses; with Basic credentials of any kind it is that of the header. */
function methodOf(basic: BasicKind, params: Params): CoreMethod {
  if (basic !== 'none') return 'client_secret_basic'
  return params.has('client_secret') ? 'client_secret_post' : 'none'
}

async function counted<T>(
  method: ClientAuthMethod,
  { recorder }: StepDependencies,
  authenticate: () => Promise<T>,
): Promise<T> {
  try {
    const found = await authenticate()
    recorder.count?.('clientAuthentications', method, 'ok')
    return found
  } catch (thrown) {
    const result = toFault(thrown).status >= 500 ? 'failed' : 'refused'
    recorder.count?.('clientAuthentications', method, result)
    throw thrown
  }
}

const failed = (detail: string): Fault => new Fault('invalid_client', { detail })

/** RFC 6749 §2.3: a client must not use more than one method in a request. */
const twoMethods = (): Fault =>
  new Fault('oauth_bad_request', { say: 'The client authenticated in two ways at once.' })

function requireMethod(client: Client, method: ClientAuthMethod): Client {
  if (client.authentication.includes(method)) return client
  throw failed(`the client may not use ${method}`)
}

const byBasic: Authenticate = async (params, where, pairs) => {
  if (pairs.length === 0) throw failed('no readable Basic credentials')
  const client = requireMethod(await findBySecret(pairs, where), 'client_secret_basic')
  const named = params.get('client_id')
  if (named !== undefined && named !== client.id)
    throw new Fault('oauth_bad_request', {
      say: 'The client_id in the body is not that of the Authorization header.',
    })
  if (params.has('client_secret')) throw twoMethods()
  return client
}

const byBody: Authenticate = async (params, where) => {
  const id = params.get('client_id')
  if (id === undefined) throw failed('no credentials')
  const client = await findBySecret([{ id, secret: params.get('client_secret') ?? '' }], where)
  return requireMethod(client, 'client_secret_post')
}

const byName: Authenticate = async (params, { dependencies }) => {
  const id = params.get('client_id')
  if (id === undefined) throw failed('no credentials')
  const client = await orUnavailable(dependencies.people.findClient(id))
  const isPublic = client?.authentication.includes('none') === true
  if (!isPublic) throw failed('no such public client, or one that has a secret')
  return client
}

const AUTHENTICATE = {
  client_secret_basic: byBasic,
  client_secret_post: byBody,
  none: byName,
} as const satisfies Record<string, Authenticate>

type CoreMethod = keyof typeof AUTHENTICATE

/** A secret to compare with one hash. `client` is undefined if the comparison is made only to take as long. */
interface Trial extends ClientPair {
  readonly encoded: string | undefined
  readonly client: Client | undefined
}

const isQuick = ({ encoded }: Trial): boolean => encoded?.startsWith('sha256:') === true

/**
 * Finds the client whose id and secret are one of the pairs. Quick hashes are compared first, so that a client whose
 * library form-encodes the secret (two pairs) waits for no slow one. A failure takes one slow comparison for each pair,
 * so that the time does not show whether the client exists (T3.9).
 * @throws Fault `invalid_client` if no pair fits
 */
async function findBySecret(pairs: readonly ClientPair[], { dependencies, address }: Where): Promise<Client> {
  const { people, hasher, clientFailures } = dependencies
  const clients = await orUnavailable(Promise.all(pairs.map(({ id }) => people.findClient(id))))
  const trials = pairs.flatMap((pair, at) => trialsOf(pair, clients[at]))
  const ordered = [...trials.filter(isQuick), ...trials.filter((trial) => !isQuick(trial))]
  for (const { id, secret, encoded, client } of ordered) {
    const right = await hasher.verify(secret, encoded, clientFailures.hashOwner(id, address))
    if (!right || client === undefined) continue
    clientFailures.count(id, address, true)
    return client
  }
  for (const id of new Set(pairs.map((pair) => pair.id))) clientFailures.count(id, address, false)
  throw failed('no such client, one that may hold no tokens, or a wrong secret')
}

function trialsOf(pair: ClientPair, client: Client | undefined): readonly Trial[] {
  const trials = (client?.secretHashes ?? []).map((encoded): Trial => ({ ...pair, encoded, client }))
  const slow = trials.some((trial) => !isQuick(trial))
  return slow ? trials : [...trials, { ...pair, encoded: undefined, client: undefined }]
}

/**
 * A step: credentials that count once are used up. It comes behind all that may fail by no fault of the client, so that they can
 * be sent again then.
 * @throws Fault `assertion_replayed`; `identity_unavailable` if the store cannot be reached
 */
export async function useUpCredentials<C extends ClientAuthenticated>(context: C): Promise<C> {
  const { attempt, useUp } = context
  if (useUp === undefined || (await useUp())) return context
  // Credentials that are sent again prove nothing.
  delete attempt.proven
  delete attempt.asker
  throw new Fault('assertion_replayed')
}

/** A step: the client proves that it has a key (C6.1.0). @param place where, as the metrics name it */
export const proveKey =
  (place: string): Step<ClientAuthenticated, ProofChecked> =>
  async (context, { security }) => ({ ...context, proof: await security.proveKey(place, context) })
