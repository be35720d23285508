import type {
  ApiDescription,
  AuthorizationDescription,
  ForeignIssuerDescription,
  OperationDescription,
} from '../../contracts/api-description.ts'
import { markdown, type Node } from './components.ts'

/** The security schemes by name: one of our own, or one for each issuer whose tokens a sidecar accepts (C11.2). */
export function securitySchemes(api: ApiDescription, authorization: AuthorizationDescription): Node {
  if (authorization.kind === 'own') return { [OWN]: ownScheme(api, authorization) }
  return Object.fromEntries(
    authorization.issuers.map((issuer, index) => [schemeName(issuer, index), foreignScheme(api, issuer)]),
  )
}

const OWN = 'oauth2'

const schemeName = ({ name }: ForeignIssuerDescription, index: number): string =>
  name ?? (index === 0 ? 'issuer' : `issuer-${index + 1}`)

type Own = Extract<AuthorizationDescription, { kind: 'own' }>

/** OpenAPI 3.1 §4.8.27: the flows of the grants that the metadata announces (C6.3.2). */
function ownScheme(api: ApiDescription, { issuer, authorizationUrl, tokenUrl, grants }: Own): Node {
  const scopes = Object.fromEntries(
    api.scopes.map(({ name, description, includedIn }) => [
      name,
      markdown(
        includedIn.length === 0 ? description : `${description} (included in ${includedIn.join(', ')})`,
      ),
    ]),
  )
  const refresh = grants.includes('refresh_token') ? { refreshUrl: tokenUrl } : {}
  return {
    type: 'oauth2',
    description: `Access tokens of ${issuer}, one for each business or fund. A token with a scope value that includes the needed one is enough.`,
    flows: {
      ...(grants.includes('authorization_code') && {
        authorizationCode: { authorizationUrl, tokenUrl, ...refresh, scopes },
      }),
      ...(grants.includes('password') && { password: { tokenUrl, ...refresh, scopes } }),
    },
  }
}

function foreignScheme(
  { scopes, areas }: ApiDescription,
  { issuer, metadataUrl }: ForeignIssuerDescription,
): Node {
  const needed = new Set(areas.flatMap((area) => area.operations.flatMap((each) => each.scopes.flat())))
  const meanings = scopes
    .filter(({ name }) => needed.has(name))
    .map(({ name, description }) => `- \`${name}\`: ${markdown(description)}`)
  const description = [`Access tokens of ${issuer}. Scope values:`, '', ...meanings].join('\n')
  return metadataUrl === undefined
    ? { type: 'http', scheme: 'bearer', description }
    : { type: 'openIdConnect', openIdConnectUrl: metadataUrl, description }
}

/** The alternatives of an operation. In a report-only area no token is one of them. */
export function securityOf(
  { scopes, mode }: OperationDescription,
  authorization: AuthorizationDescription,
): readonly Node[] {
  const schemes = authorization.kind === 'own' ? [OWN] : authorization.issuers.map(schemeName)
  return [
    ...scopes.flatMap((values) => schemes.map((scheme) => ({ [scheme]: values }))),
    ...(mode === 'report-only' ? [{}] : []),
  ]
}
