import type { Answer } from '../contracts/exchange.ts'
import type { Principal } from '../contracts/principal.ts'
import { stringifyJson } from '../http/json.ts'
import { Fault } from '../kernel/faults.ts'
import type { Runtime } from './runtime.ts'

const HEADERS = {
  'Content-Type': 'application/json; charset=utf-8',
  'Cache-Control': 'no-store, must-revalidate, no-cache, max-age=0',
  Vary: 'Accept',
}

/** C6.3.1: the claims of C5.6 as a bare JSON object, from whoever owns them. */
export async function describePrincipal({ userinfo }: Runtime, principal: Principal): Promise<Answer> {
  if (userinfo === undefined) throw new Fault('unknown_action')
  return { status: 200, headers: HEADERS, body: stringifyJson(await userinfo.describe(principal)) }
}
