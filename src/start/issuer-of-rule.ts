/** The issuer that a revocation names in a sidecar (C11.2): ids of several issuers are kept apart. */
import type { RevokedTokens } from '../contracts/tokens.ts'
import type { IssuerConfig } from '../keys/issuers-schema.ts'

type Named = Pick<IssuerConfig, 'issuer' | 'name'>

/** The ids that only mean something together with their issuer. A business code is this service's own. */
const OF_ISSUER = ['jti', 'subject', 'client'] as const

/** The same rule with the `iss` of the issuer in place of its name. One that is not configured stays as it is. */
export function withIss(tokens: RevokedTokens, issuers: readonly Named[]): RevokedTokens {
  if (tokens.issuer === undefined) return tokens
  const found = issuers.find(({ issuer, name }) => issuer === tokens.issuer || name === tokens.issuer)
  return { ...tokens, issuer: found?.issuer ?? tokens.issuer }
}

/** What is wrong with the issuer of a rule, a line each. The rule's `issuer` is an `iss`. */
export function issuerProblems(tokens: RevokedTokens, issuers: readonly Named[]): readonly string[] {
  const { issuer } = tokens
  if (issuer !== undefined && !issuers.some((config) => config.issuer === issuer))
    return [`issuer  is not configured: "${issuer}" — force it if it is right`]
  const needsIssuer = issuers.length > 1 && OF_ISSUER.some((member) => member in tokens)
  if (issuer !== undefined || !needsIssuer) return []
  return ['issuer  is missing: this would end the id at every issuer — name one, or force it']
}
