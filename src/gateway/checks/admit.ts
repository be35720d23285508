import type { Exchange } from '../../contracts/exchange.ts'
import type { Principal } from '../../contracts/principal.ts'
import type { Runtime } from '../runtime.ts'

/** C4.5: the client is within its rate and its calls in flight. What it is told of that goes on every answer. */
export function admit(
  { admission }: Runtime,
  principal: Principal,
  exchange: Exchange,
  findings: { headers?: Readonly<Record<string, string>> | undefined },
): void {
  const verdict = admission.admit(principal, exchange)
  if (verdict === undefined) return
  findings.headers = verdict.headers
  if (verdict.refusal !== undefined) throw verdict.refusal
}
