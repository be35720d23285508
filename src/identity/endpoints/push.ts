import type { Answer } from '../../contracts/exchange.ts'
import { privateAnswer } from '../answers.ts'
import { checkPushed } from '../authorize/request.ts'
import type { ClientAuthenticated, Step } from '../endpoint.ts'

/** Keeps an authorization request for a browser that comes with its URI (C6.2.1a, RFC 9126 §2). */
export const pushRequest: Step<ClientAuthenticated, Answer> = async (context, dependencies) => {
  const { client, exchange } = context
  const params = await checkPushed(context, dependencies)
  const address = exchange.clientAddress
  const uri = await dependencies.pushedRequests.push({ client, params, address })
  const body = { request_uri: uri, expires_in: Math.floor(dependencies.config.par.lifetime / 1000) }
  return { ...privateAnswer(body, dependencies), status: 201 }
}
