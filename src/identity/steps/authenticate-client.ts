import type { Client } from '../../contracts/people.ts'
import { type ClientPair, parseBasic } from '../../http/authorization.ts'
import { Fault } from '../../kernel/faults.ts'
import { orUnavailable } from '../dependencies.ts'
import type { ClientAuthenticated, Parsed, Step, StepDependencies } from '../endpoint.ts'

/**
 * Authenticates the client (C6.1.2).
 * @throws Fault `invalid_client` for every failure, so that nobody learns whether the id or the secret was wrong;
 *   `oauth_bad_request` for two client ids or two methods
 */
export const authenticateClient: Step<Parsed, ClientAuthenticated> = async (context, dependencies) => {
  const { attempt, exchange, params } = context
  const basic = parseBasic(exchange.head, dependencies)
  const authenticate = { none: byBody, 'other-scheme': fail, malformed: fail, pairs: byBasic }[basic.kind]
  const pairs: readonly ClientPair[] = basic.kind === 'pairs' ? basic.pairs : []
  attempt.typed = pairs[0]?.id ?? params.get('client_id')
  const client = await authenticate(params, { dependencies, address: exchange.clientAddress }, pairs)
  Object.assign(attempt, { client: client.id, typed: undefined })
  if (client.kind !== 'public') attempt.proven = 'client'
  return { ...context, client }
}

type Params = Parsed['params']

interface Where {
  readonly dependencies: StepDependencies
  readonly address: string
}

const failed = (detail: string): Fault => new Fault('invalid_client', { detail })

const fail = (): Promise<never> => Promise.reject(failed('no readable Basic credentials'))

async function byBasic(params: Params, where: Where, pairs: readonly ClientPair[]): Promise<Client> {
  const client = await findBySecret(pairs, where)
  const named = params.get('client_id')
  if (named !== undefined && named !== client.id)
    throw new Fault('oauth_bad_request', {
      say: 'The client_id in the body is not that of the Authorization header.',
    })
  if (!params.has('client_secret')) return client
  if (!client.secretPost) throw failed('credentials in the body')
  // RFC 6749 §2.3: a client must not use more than one method in a request.
  throw new Fault('oauth_bad_request', { say: 'The client authenticated in two ways at once.' })
}

async function byBody(params: Params, where: Where): Promise<Client> {
  const id = params.get('client_id')
  if (id === undefined) throw failed('no credentials')
  const secret = params.get('client_secret')
  if (secret === undefined) return findPublic(id, where.dependencies)
  const client = await findBySecret([{ id, secret }], where)
  if (!client.secretPost) throw failed('credentials in the body')
  return client
}

async function findPublic(id: string, { people }: StepDependencies): Promise<Client> {
  const client = await orUnavailable(people.findClient(id))
  const isPublic = client?.kind === 'public' && client.secretHashes.length === 0
  if (!isPublic) throw failed('no such public client, or one that has a secret')
  return client
}

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
