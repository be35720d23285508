import type { Exchange } from '../../contracts/exchange.ts'
import type { Principal } from '../../contracts/principal.ts'
import { parseBearer } from '../../http/authorization.ts'
import { Fault, type FaultCode } from '../../kernel/faults.ts'
import type { Runtime } from '../runtime.ts'

const REFUSALS = {
  none: 'no_credentials',
  'other-scheme': 'other_scheme',
  malformed: 'invalid_token',
} as const satisfies Record<string, FaultCode>

/** C4.4: a genuine, unexpired, unrevoked access token of this issuer and audience. Synchronous for a known token. */
export function authenticate(runtime: Runtime, { head }: Exchange): Principal | Promise<Principal> {
  const { tokens } = runtime
  const credentials = parseBearer(head, runtime, tokens.isKnown)
  if (credentials.kind === 'token') return tokens.check(credentials.token)
  throw new Fault(REFUSALS[credentials.kind])
}
