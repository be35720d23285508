import type { Answer } from '../../base/contracts/calls/exchange.ts'
import { Fault, toFault } from '../../base/kernel/faults.ts'
import { privateAnswer } from '../steps/answers.ts'
import { checkPushed } from '../authorize/read-request.ts'
import type { Arrived, ProofChecked, Step } from '../steps/endpoint.ts'

/** Keeps an authorization request for a browser that comes with its URI (C6.2.1a, RFC 9126 §2). */
export const pushRequest: Step<ProofChecked, Answer> = async (context, dependencies) => {
  const { client, exchange } = context
  const params = boundToKey(await checkPushed(context, dependencies), context)
  const address = exchange.clientAddress
  const uri = await dependencies.pushedRequests.push({ client, params, address })
  const body = { request_uri: uri, expires_in: Math.floor(dependencies.config.par.lifetime / 1000) }
  return { ...privateAnswer(body, dependencies), status: 201 }
}

type Params = ReadonlyMap<string, string>

/** RFC 9449 §10.1: the code is bound to the key that was proven here. @throws Fault `invalid_dpop_proof` for two keys */
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
export const countPushed =
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
