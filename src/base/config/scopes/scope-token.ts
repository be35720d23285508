/**
 * Scope values and codes, as types that hold only what RFC 6749 §3.3 lets a scope value be. Others get a scope as one
 * text (the token's claim, `X-Postern-Scope`, `X-Postern-Token`, introspection), which they split at white space of any
 * kind: a no-break space in a fund code would give them a value that nobody granted (T3.11). The functions here are the
 * only ones that make these types.
 */
declare const VALUE: unique symbol
declare const CODE: unique symbol
declare const TEXT: unique symbol

/** One scope value: printable ASCII but space, `"` and `\`. */
export type ScopeValue = string & { readonly [VALUE]: true }

/** The code of a business or fund: it is part of a scope value (`target:f/ACME/SUPER1`) and a segment of a path. */
export type Code = ScopeValue & { readonly [CODE]: true }

/** Scope values with one space between two, or nothing. */
export type ScopeText = string & { readonly [TEXT]: true }

/** A `scope-token` (RFC 6749 §3.3). */
export const SCOPE_TOKEN_PATTERN = '^[\\x21\\x23-\\x5B\\x5D-\\x7E]+$'
const SCOPE_TOKEN = new RegExp(SCOPE_TOKEN_PATTERN)
/** A scope token without "/", which would end the code, and no dot segment. */
const PATH_CODE = /^(?!\.{1,2}$)[\x21\x23-\x2E\x30-\x5B\x5D-\x7E]+$/

export const readScopeValue = (text: string): ScopeValue | undefined =>
  SCOPE_TOKEN.test(text) ? (text as ScopeValue) : undefined

/** Reads the code in a URL, a target or a directory; undefined where the text cannot be a code. Case counts (C3.5). */
export const readCode = (text: string): Code | undefined =>
  PATH_CODE.test(text) ? (text as Code) : undefined

/** Runs of spaces divide, as in C6.1.1. Undefined if one of the values can be none. */
export function splitScope(text: string): readonly ScopeValue[] | undefined {
  const values = text.split(' ').filter((value) => value !== '')
  return values.every(isScopeValue) ? values : undefined
}

export const isScopeValue = (text: string): text is ScopeValue => SCOPE_TOKEN.test(text)

export const joinScope = (values: Iterable<ScopeValue>): ScopeText => [...values].join(' ') as ScopeText

/** The scope value that picks a business (C5.4). */
export const businessTarget = (business: Code): ScopeValue => `target:b/${business}` as ScopeValue

/** The place that a token opens: one business, or one fund of it (C5.4). */
export type Target =
  | { readonly level: 'business'; readonly business: Code }
  | { readonly level: 'fund'; readonly business: Code; readonly fund: Code }

/** `b/ACME` or `f/ACME/SUPER1`: the value without `target:`. */
export const targetText = (target: Target): string =>
  target.level === 'fund' ? `f/${target.business}/${target.fund}` : `b/${target.business}`

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
