import type { KeyPath, Problems } from '../../base/config/problems.ts'
import { optional, secret, section, type Static, text, url } from '../../base/config/schema.ts'
import { checkFetched, checkMetadata, type IssuerConfig } from '../../identity/keys/issuers/issuers-schema.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'

const introspection = section(
  {
    url: optional(
      url({
        description:
          'URL of the endpoint. https, or http on loopback. Default: as the metadata of the issuer says.',
      }),
    ),
    clientId: text({ description: 'Client id of this service at the issuer.' }),
    clientSecret: secret({ description: 'Its secret, sent by HTTP Basic.' }),
  },
  {
    description:
      'Opaque tokens are introspected by this issuer (RFC 7662). One issuer at most may have this section.',
  },
)

export const INTROSPECTION_KEYS = { introspection: optional(introspection) }

type Introspection = Static<typeof introspection>

/** The value of an issuer's `introspection`. Only this folder reads it. */
export const introspectionOf = (issuer: Pick<IssuerConfig, 'issuer'>): Introspection | undefined =>
  (issuer as { readonly introspection?: Introspection }).introspection

function checkIssuer(issuer: IssuerConfig, at: KeyPath, problems: Problems): void {
  const own = introspectionOf(issuer)
  if (own === undefined) return
  if (own.url !== undefined)
    checkFetched(own.url, [...at, 'introspection', 'url'], 'read tokens and the secret', problems)
  // Without `jwks` the core looks at the metadata's address.
  else if (issuer.jwks !== undefined) checkMetadata(issuer, at, problems)
}

export function checkIntrospection({ issuers }: Configuration, problems: Problems): void {
  const having = [...issuers.entries()].filter(([, issuer]) => introspectionOf(issuer) !== undefined)
  for (const [index, issuer] of having) checkIssuer(issuer, ['issuers', index], problems)
  for (const [index] of having.slice(1))
    problems.error(
      ['issuers', index, 'introspection'],
      'is there twice: an opaque token does not say whose it is',
    )
}
