/** The endpoint for pushed authorization requests (C6.2.1a, RFC 9126 §2). */
import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { checkSentRequest } from '../../identity/authorize/read-request.ts'
import { privateAnswer, refuseAsJson } from '../../identity/steps/answers.ts'
import { authenticateClient, proveKey, useUpCredentials } from '../../identity/steps/authenticate-client.ts'
import {
  type Arrived,
  type Endpoint,
  flow,
  type ProofChecked,
  type Step,
} from '../../identity/steps/endpoint.ts'
import { AUTHORIZATION_PARAMETERS, formReader } from '../../identity/steps/read-form.ts'
import { recordRefusals } from '../../identity/steps/records.ts'
import { PushedRequests } from './pushed-requests.ts'
import { identitySections } from './schema.ts'

/** It is small because the request is stored (RFC 9126 §2.3). */
const readPushedForm = formReader({
  most: 16 * 1024,
  tooLarge: () => new Fault('pushed_request_too_large'),
})

/** `client_id` is known by the client's authentication. */
const KEPT = AUTHORIZATION_PARAMETERS.filter((name) => name !== 'client_id')

/** Keeps an authorization request for a browser that comes with its URI. Its checks are made again then. */
const pushRequest: Step<ProofChecked, Answer> = async (context, dependencies) => {
  const { client, exchange, params: sent } = context
  for (const name of ['request', 'request_uri'])
    if (sent.has(name))
      throw new Fault('oauth_bad_request', { say: `The parameter ${name} cannot be pushed.` })
  const kept = new Map(
    KEPT.flatMap((name) => {
      const value = sent.get(name)
      return value === undefined ? [] : [[name, value] as const]
    }),
  )
  await checkSentRequest(context, kept, dependencies)
  const params = boundToKey(kept, context)
  const uri = await new PushedRequests(dependencies).push({ client, params, address: exchange.clientAddress })
  const { lifetime } = identitySections(dependencies.config).par
  const body = { request_uri: uri, expires_in: Math.floor(lifetime / 1000) }
  return { ...privateAnswer(body, dependencies), status: 201 }
}

type Params = ReadonlyMap<string, string>

/** A proof binds the code to its key (RFC 9449 §10.1). @throws Fault `invalid_dpop_proof` for two keys */
function boundToKey(params: Params, { proof }: ProofChecked): Params {
  if (proof === undefined) return params
  if ((params.get('dpop_jkt') ?? proof.jkt) !== proof.jkt)
    throw new Fault('invalid_dpop_proof', { say: 'It is of another key than dpop_jkt.' })
  return new Map([...params, ['dpop_jkt', proof.jkt]])
}

const resultOf = (thrown: unknown): string => {
  const { code, status } = toFault(thrown)
  if (code === 'too_many_pushed_requests') return 'too_many'
  return status >= 500 ? 'failed' : 'refused'
}

/** Counts what becomes of requests that are pushed. */
const countPushed =
  (steps: Step<Arrived, Answer>): Step<Arrived, Answer> =>
  async (arrived, dependencies) => {
    const count = (result: string): void => dependencies.recorder.count?.('pushedRequests', result)
    try {
      const answer = await steps(arrived, dependencies)
      count('pushed')
      return answer
    } catch (thrown) {
      count(resultOf(thrown))
      throw thrown
    }
  }

export const PUSH: Endpoint = {
  name: 'par',
  path: (issuerPath) => `${issuerPath}/connect/par`,
  methods: ['POST'],
  closes: true,
  crossOrigin: true,
  steps: countPushed(
    recordRefusals(
      'authorization.refused',
      flow(readPushedForm, authenticateClient, proveKey('par'), useUpCredentials, pushRequest),
    ),
  ),
  refuse: refuseAsJson,
  announcedAs: 'pushed_authorization_request_endpoint',
}
