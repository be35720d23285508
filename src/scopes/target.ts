import { readCode, type Code } from './scope-token.ts'

/** What a token opens: one business, or one fund of it (C5.4). */
export type Target =
  | { readonly level: 'business'; readonly business: Code }
  | { readonly level: 'fund'; readonly business: Code; readonly fund: Code }

const TARGET = /^target:(?:b\/([^/]+)|f\/([^/]+)\/([^/]+))$/

export const isTargetValue = (value: string): boolean => value === 'target' || value.startsWith('target:')

/** `target:b/ACME` or `target:f/ACME/SUPER1` (C5.4); undefined for anything else, bare `target:b` included. */
export function parseTarget(value: string): Target | undefined {
  const [, atBusiness, ofFund, atFund] = TARGET.exec(value) ?? []
  const business = readCode(atBusiness ?? ofFund ?? '')
  if (business === undefined) return undefined
  if (atFund === undefined) return { level: 'business', business }
  const fund = readCode(atFund)
  return fund && { level: 'fund', business, fund }
}
