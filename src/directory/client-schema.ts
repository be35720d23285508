/** A client of the configuration, of a file of clients, or of the store. */
import {
  choice,
  day,
  duration,
  flag,
  list,
  literalText,
  optional,
  secret,
  section,
  text,
  type Static,
} from '../config/schema.ts'
import { CLIENT_ID_EXPECTED, CLIENT_ID_PATTERN, nameForPeople } from './names.ts'

export const GRANTS = ['password', 'authorization_code', 'refresh_token'] as const

/** A page of a client's own, for people. */
const page = (description: string) =>
  literalText({
    pattern: '^https?://[^\\s/@#?<>"]+(/[^\\s<>"]*)?$',
    expected: 'an http:// or https:// URL',
    description,
  })

export const client = {
  kind: choice(['customer', 'partner', 'public'], {
    description:
      '`customer`: may use the password grant. `partner`: code flow. `public`: code flow without a secret.',
  }),
  name: nameForPeople('Name for people. The consent page shows it.'),
  secrets: list(secret({ plain: true, description: '`sha256:…` or `$argon2id$…`.' }), {
    default: [],
    description: 'Hashes of its secrets: two while one replaces the other, none for a public client.',
  }),
  grants: list(choice(GRANTS, { description: 'A grant.' }), {
    minItems: 1,
    unique: true,
    description: 'Grants that it may use.',
  }),
  agreement: optional(
    day({
      description:
        'Day on which the customer agreement was signed. The password grant works from then on (UTC).',
    }),
  ),
  businesses: list(text({ description: 'A business code.' }), {
    default: [],
    unique: true,
    description: 'Businesses that its tokens may name as their target.',
  }),
  scopes: list(text({ description: 'A scope value.' }), {
    unique: true,
    description: 'Scope values that its tokens may have, with everything that they imply.',
  }),
  defaultScope: optional(
    text({
      description: 'Scope of a request that names none, separated by spaces. It may contain a target.',
    }),
  ),
  redirectUris: list(text({ description: 'An absolute URI.' }), {
    default: [],
    unique: true,
    description: 'URIs that an authorization code may be sent to. They are compared exactly.',
  }),
  postLogoutRedirectUris: list(text({ description: 'An absolute URI.' }), {
    default: [],
    unique: true,
    description: 'URIs that a browser may be sent to after logout.',
  }),
  policyUri: optional(page('Address of its privacy policy. The consent page links to it.')),
  tosUri: optional(page('Address of its terms of service. The consent page links to it.')),
  disabled: flag({ default: false, description: 'Refuse all its requests.' }),
  accessTokenLifetime: optional(
    duration({
      description: 'Lifetime of its access tokens, at most `1d`. Default: `identity.accessToken.lifetime`.',
    }),
  ),
  idTokenAlgorithm: optional(
    choice(['ES256', 'RS256'], {
      description: 'Signature algorithm of its id_tokens. Default: `identity.idToken.algorithm`.',
    }),
  ),
  secretPost: flag({
    default: false,
    description: 'Allow the secret in the request body (`client_secret_post`).',
  }),
  requirePkce: flag({
    default: false,
    description:
      'Require PKCE, also of a request for `openid` with a `nonce`. Public clients always need it.',
  }),
  resource: flag({
    default: false,
    description: 'It is a resource server: it may introspect tokens of other clients.',
  }),
}

/** A record in a file contains its key. */
export const clientRecordSchema = section({
  id: text({ pattern: CLIENT_ID_PATTERN, expected: CLIENT_ID_EXPECTED, description: 'The client id.' }),
  ...client,
})

export type ClientRecord = Static<typeof clientRecordSchema>
