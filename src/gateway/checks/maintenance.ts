import type { Exchange } from '../../contracts/exchange.ts'
import type { Principal } from '../../contracts/principal.ts'
import type { Closure } from '../../contracts/switches.ts'
import { Fault, type FaultCode } from '../../kernel/faults.ts'
import type { Operation } from '../action.ts'
import type { Runtime } from '../runtime.ts'
import { authenticate } from './authenticate.ts'

const refusal = (code: FaultCode, { retryAfter, message }: Closure): Fault =>
  new Fault(code, { retryAfter, ...(message !== undefined && { notice: message }) })

/**
 * C4.2, C9.2: while the whole service is switched off, only callers on its allow list pass. Clients on the list
 * prove themselves by their token first; everything else, bad tokens included, is 503.
 */
export function passServiceMaintenance(runtime: Runtime, exchange: Exchange): undefined | Promise<undefined> {
  const closure = runtime.switches.service()
  if (closure === undefined || closure.admitsAddress(exchange.clientAddress)) return undefined
  if (closure.clients.size === 0) throw refusal('service_maintenance', closure)
  return admitListedClient(runtime, exchange, closure)
}

async function admitListedClient(runtime: Runtime, exchange: Exchange, closure: Closure): Promise<undefined> {
  const principal = await Promise.resolve()
    .then(() => authenticate(runtime, exchange))
    .catch(() => undefined)
  if (principal === undefined || !closure.clients.has(principal.client))
    throw refusal('service_maintenance', closure)
  return undefined
}

/** C4.9: maintenance of this business, area or backend. */
export function refuseInPlaceMaintenance(
  { switches }: Runtime,
  exchange: Exchange,
  principal: Principal | undefined,
  { action }: Operation,
  business: string,
): void {
  const closure = switches.place(business, action.area, action.backend.name)
  if (closure === undefined || closure.admitsAddress(exchange.clientAddress)) return
  if (principal === undefined || !closure.clients.has(principal.client))
    throw refusal('place_maintenance', closure)
}
