import { targetText } from '../../base/config/scopes/scope-token.ts'
import type { Facts } from '../../base/contracts/calls/explanation.ts'
import { NEEDS_ISSUER } from '../../base/contracts/people/keys.ts'
import type { Principal } from '../../base/contracts/people/principal.ts'
import type { RevocationRule } from '../../base/contracts/records/tokens.ts'
import { usesDpop } from '../../base/http/head/authorization.ts'
import { parseCompactToken } from '../../identity/keys/verify/token-verifier.ts'
import type { CheckDescription, CheckResult, Progress } from './progress.ts'

const instant = (seconds: unknown): string | undefined =>
  typeof seconds === 'number' && Math.abs(seconds) < 8e12 ? new Date(seconds * 1000).toISOString() : undefined

interface Claimed {
  readonly header: Readonly<Record<string, unknown>>
  readonly payload: Readonly<Record<string, unknown>>
}

/** The claims, unverified; undefined if it is no JWT. */
function claimsOf(token: string | undefined): Claimed | undefined {
  try {
    return token === undefined ? undefined : parseCompactToken(token)
  } catch {
    return undefined
  }
}

interface Reason {
  /** The detail of the fault: all of it, or its beginning. */
  readonly detail: string
  readonly kind: string
  readonly words: (claimed: Claimed, progress: Progress) => string
}

const fixed = (words: string) => (): string => words

/** Why tokens are refused, by the fault's detail. The first row that fits counts; the last one fits all. */
const REASONS: readonly Reason[] = [
  {
    detail: 'revoked',
    kind: 'revoked',
    words: (_, progress) => `It was revoked${wordsOfRule(ruleOf(progress))}.`,
  },
  {
    detail: 'expired',
    kind: 'expired',
    words: ({ payload }) => `It expired${at(payload['exp'])}.`,
  },
  {
    detail: 'claim: exp has passed',
    kind: 'expired',
    words: ({ payload }) => `It expired${at(payload['exp'])}.`,
  },
  {
    detail: 'claim: aud',
    kind: 'wrong audience',
    words: ({ payload }) => `It is for another audience: ${text(payload['aud'])}.`,
  },
  {
    detail: 'claim: iss',
    kind: 'wrong issuer',
    words: ({ payload }) => `It comes from an issuer that is not trusted here: ${text(payload['iss'])}.`,
  },
  {
    detail: 'header: kid names no key',
    kind: 'unknown key',
    words: ({ header }) => `Its issuer has no key with the id ${text(header['kid'])}.`,
  },
  { detail: 'its key was withdrawn', kind: 'unknown key', words: fixed('Its key was withdrawn.') },
  {
    detail: 'signature',
    kind: 'wrong signature',
    words: fixed(
      'Its signature is not that of the key that it names: it was changed, or made by somebody else.',
    ),
  },
  {
    detail: 'not three parts',
    kind: 'not a JWT',
    words: fixed('It is not a signed JWT: that has three parts, with two dots between them.'),
  },
  {
    detail: 'header: not',
    kind: 'not a JWT',
    words: fixed('It is not a JWT: its first part cannot be read.'),
  },
  {
    detail: 'payload: not',
    kind: 'not a JWT',
    words: fixed('It is not a JWT: its second part cannot be read.'),
  },
  {
    detail: 'header: typ',
    kind: 'not an access token',
    words: ({ header }) =>
      `It is of another kind: its type is ${text(header['typ'])}. An id_token is no access token.`,
  },
  {
    detail: 'claim: nbf is in the future',
    kind: 'not valid yet',
    words: ({ payload }) => `It is valid only${at(payload['nbf'])}.`,
  },
  {
    detail: 'claim: iat is in the future',
    kind: 'not valid yet',
    words: ({ payload }) => `It says that it was issued${at(payload['iat'])}, which is in the future.`,
  },
  {
    detail: 'claim: cnf',
    kind: 'bound to a key',
    words: fixed('It is bound to a key that no proof is taken of here.'),
  },
  {
    detail: 'introspection: not active',
    kind: 'not active',
    words: fixed('Its issuer says that it is not active.'),
  },
]

const at = (seconds: unknown): string => {
  const time = instant(seconds)
  return time === undefined ? '' : ` at ${time}`
}

/** A claim, short and on one line. */
function text(claim: unknown): string {
  if (claim === undefined) return 'none'
  const written = JSON.stringify(claim)
  return written.length <= 200 ? written : `${written.slice(0, 200)}…`
}

const reasonOf = (detail: string): Reason | undefined =>
  REASONS.find((each) => detail.startsWith(each.detail))

function ruleOf({ runtime, credentials, principal }: Progress): RevocationRule | undefined {
  const whose = principal ?? credentials.claimed
  return whose && runtime.tokens.ruleFor(whose)
}

function wordsOfRule(rule: RevocationRule | undefined): string {
  if (rule === undefined) return ''
  const { tokens, madeAt, order } = rule
  const what = Object.entries(tokens).map(([name, value]) => `${name} ${value}`)
  const name = order?.by ?? order?.operator
  const by = name === undefined ? '' : ` by ${name}`
  const via = order?.via === undefined ? '' : ` (${order.via})`
  const why = order?.reason === undefined ? '' : `: ${order.reason}`
  return ` with everything of ${what.join(', ')}, at ${new Date(madeAt).toISOString()}${by}${via}${why}`
}

const CREDENTIALS: Readonly<Record<string, string>> = {
  no_credentials: 'The call has no Authorization header.',
  other_scheme: 'The Authorization header is of another scheme than Bearer; the case of its letters counts.',
  invalid_token: 'What stands behind Bearer is not one token.',
}

const unverifiedFacts = (claimed: Claimed | undefined): Facts => {
  if (claimed === undefined) return {}
  const { alg, typ, kid } = claimed.header
  const { iss, aud, jti, nbf } = claimed.payload
  return { algorithm: alg, type: typ, key: kid, issuer: iss, audience: aud, id: jti, notBefore: instant(nbf) }
}

/** `b/ACME`, `f/ACME/SUPER1`. */
export const targetTextOf = ({ target }: Principal): string | undefined => target && targetText(target)

const principalFacts = (principal: Principal | undefined): Facts =>
  principal === undefined
    ? {}
    : {
        client: principal.client,
        subject: principal.isMachine ? undefined : principal.subject,
        scope: principal.scope,
        target: targetTextOf(principal),
        issuedAt: instant(principal.issuedAt),
        expiresAt: instant(principal.expiresAt),
      }

/** The row of C4.4. No part of the token itself is among the facts. */
export function describeToken(progress: Progress, result: CheckResult): CheckDescription {
  const { credentials, principal } = progress
  const claimed = claimsOf(credentials.token)
  const kind = kindOf(progress, result)
  const rule = kind === 'revoked' ? ruleOf(progress) : undefined
  return {
    facts: {
      ...unverifiedFacts(claimed),
      ...principalFacts(principal),
      verified: result.verdict === 'passed',
      problem: kind,
      revokedBy: rule && { ...rule, madeAt: new Date(rule.madeAt).toISOString() },
      dropped: credentials.grant?.dropped,
    },
    words: wordsOf(progress, result, claimed),
  }
}

const kindOf = ({ credentials }: Progress, { fault }: CheckResult): string | undefined => {
  if (fault === undefined || credentials.token === undefined) return undefined
  return reasonOf(fault.facts.detail ?? '')?.kind ?? 'other'
}

/** The row of C4.4a. The key is named by its thumbprint. */
export function describeProof(
  { principal, authenticated, exchange }: Progress,
  { verdict, fault }: CheckResult,
): CheckDescription {
  const key = principal?.confirmation
  const scheme = usesDpop(exchange.head) ? 'DPoP' : 'Bearer'
  return {
    facts: { key, scheme, problem: fault?.facts.detail },
    words:
      verdict === 'failed'
        ? [fault?.publicText, fault?.facts.detail && `In detail: ${fault.facts.detail}.`]
            .filter(Boolean)
            .join(' ')
        : key !== undefined
          ? `The token is bound to the key ${key}.`
          : authenticated
            ? 'The token is not bound to a key.'
            : 'Whether the token is bound to a key is not known.',
  }
}

const closed = (words: string): string => (words.endsWith('.') ? words : `${words}.`)

function wordsOf(progress: Progress, { verdict, fault }: CheckResult, claimed: Claimed | undefined): string {
  const { credentials, principal, call } = progress
  if (verdict === 'unknown') return wordsOfUnknown(fault?.facts.detail)
  if (fault === undefined && principal !== undefined) return wordsOfPassed(progress, principal)
  const { code = 'no_credentials', facts = {} } = fault ?? {}
  if (call.caller !== undefined)
    return `No such token can be had (${code}): ${closed(facts.detail ?? facts.say ?? fault?.publicText ?? '')}`
  if (credentials.token === undefined) return CREDENTIALS[code] ?? fault?.publicText ?? ''
  const reason = reasonOf(facts.detail ?? '')
  const empty: Claimed = { header: {}, payload: {} }
  return (
    reason?.words(claimed ?? empty, progress) ?? `It is refused: ${facts.detail ?? fault?.publicText ?? ''}.`
  )
}

const wordsOfUnknown = (detail: string | undefined): string =>
  detail === NEEDS_ISSUER || detail === undefined
    ? 'Its issuer would have to be asked, and an explanation asks nobody.'
    : `It cannot be verified now: ${detail}.`

function wordsOfPassed({ credentials: { grant } }: Progress, principal: Principal): string {
  const { client, isMachine, subject } = principal
  const who = isMachine ? `machine ${client}` : `client ${client} for subject ${subject}`
  const target = targetTextOf(principal)
  const where = target === undefined ? 'without a target' : `for ${target}`
  if (grant === undefined)
    return `The token of ${who}, ${where}, is valid until ${instant(principal.expiresAt)}.`
  const dropped = grant.dropped.length === 0 ? '' : ` Not granted: ${grant.dropped.join(' ')}.`
  return `As claimed: ${who}, ${where}, with the scope ${principal.scope}.${dropped}`
}
