import type { Places } from '../../contracts/places.ts'
import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import type { Asked } from './action.ts'

/**
 * C4.8: the token's target is the URL's business (and fund), and they exist. The three failures are one fault, and
 * both questions are always asked, so that neither bytes nor time tell them apart (C4.12).
 */
export function requirePlace(places: Places | undefined, principal: Principal, asked: Asked): void {
  const isTarget = targets(principal, asked)
  const exists = places === undefined || existsIn(places, asked)
  if (!isTarget || !exists) throw new Fault('unknown_place')
}

/** A business target opens the business and all its funds, a fund target that fund only (C5.4). */
function targets({ target }: Principal, { business, fund }: Asked): boolean {
  if (target === undefined || target.business !== business) return false
  return target.level === 'business' || target.fund === fund
}

function existsIn(places: Places, { business, fund }: Asked): boolean {
  const known = places.findBusiness(business)
  if (known === undefined) return false
  return fund === undefined || known.funds === 'any' || known.funds.has(fund)
}
