/** What a token opens: one business, or one fund of it (C5.4). */
export type Target =
  | { readonly level: 'business'; readonly business: string }
  | { readonly level: 'fund'; readonly business: string; readonly fund: string }

const TARGET = /^target:(?:b\/([^/]+)|f\/([^/]+)\/([^/]+))$/

export const isTargetValue = (value: string): boolean => value === 'target' || value.startsWith('target:')

/** `target:b/ACME` or `target:f/ACME/SUPER1` (C5.4); undefined for anything else, bare `target:b` included. */
export function parseTarget(value: string): Target | undefined {
  const [, business, ofFund, fund] = TARGET.exec(value) ?? []
  if (business !== undefined) return { level: 'business', business }
  if (ofFund !== undefined && fund !== undefined) return { level: 'fund', business: ofFund, fund }
  return undefined
}
