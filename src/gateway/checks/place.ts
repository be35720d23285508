import type { Place, Places } from '../../contracts/places.ts'
import type { Principal } from '../../contracts/principal.ts'
import { Fault } from '../../kernel/faults.ts'
import { readCode } from '../../scopes/scope-token.ts'
import type { Target } from '../../scopes/target.ts'
import type { Asked } from './action.ts'

/**
 * C4.8: the token's target is the URL's business (and fund), and they exist. The three failures are one fault, and
 * both questions are always asked, so that neither bytes nor time tell them apart (C4.12).
 *
 * Answers the place as codes: what the URL says becomes one here. With `funds: any`, and where there is no directory,
 * this alone keeps what is no code from being told upstream (T3.11).
 */
export function requirePlace(places: Places | undefined, { target }: Principal, asked: Asked): Place {
  const isTarget = targets(target, asked)
  const exists = places === undefined || existsIn(places, asked)
  const fund = asked.fund === undefined ? undefined : readCode(asked.fund)
  const isCode = asked.fund === undefined || fund !== undefined
  if (target === undefined || !isTarget || !exists || !isCode) throw new Fault('unknown_place')
  return { business: target.business, fund }
}

/** A business target opens the business and all its funds, a fund target that fund only (C5.4). */
function targets(target: Target | undefined, { business, fund }: Asked): boolean {
  if (target === undefined || target.business !== business) return false
  return target.level === 'business' || target.fund === fund
}

function existsIn(places: Places, { business, fund }: Asked): boolean {
  const known = places.findBusiness(business)
  if (known === undefined) return false
  const funds: 'any' | ReadonlySet<string> = known.funds
  return fund === undefined || funds === 'any' || funds.has(fund)
}
