/** The options of `postern client add` and `postern client change`. */
import { ORDER } from './order-options.ts'

/** The option for each key of a client's record (src/directory/config.ts). */
export const CLIENT_OPTIONS = {
  id: 'ID',
  kind: 'kind',
  name: 'name',
  grants: 'grant',
  businesses: 'business',
  scopes: 'scope',
  agreement: 'agreement',
  defaultScope: 'default-scope',
  redirectUris: 'redirect-uri',
  postLogoutRedirectUris: 'post-logout-redirect-uri',
  accessTokenLifetime: 'access-token-lifetime',
  idTokenAlgorithm: 'id-token-algorithm',
  secretPost: 'secret-post',
  requirePkce: 'require-pkce',
  resource: 'resource',
} as const

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const

/** `--config`, who gives the order, and `--json`. */
export const JSON_TOO = { ...ORDER, json: flag }

/** For `parseArgs`: what `add` and `change` take. */
export const CLIENT_ARGUMENTS = {
  ...JSON_TOO,
  kind: text,
  name: text,
  grant: texts,
  business: texts,
  scope: texts,
  agreement: text,
  'default-scope': text,
  'redirect-uri': texts,
  'post-logout-redirect-uri': texts,
  'access-token-lifetime': text,
  'id-token-algorithm': text,
  'secret-post': flag,
  'require-pkce': flag,
  resource: flag,
} as const

type Values = Readonly<Record<string, unknown>>

/** The words of `--scope a --scope b` and of `--scope 'a b'`. */
const words = (given: readonly string[]): readonly string[] =>
  given.flatMap((value) => value.split(' ')).filter((word) => word !== '')

/** What is given, by key of the record. */
export const givenKeys = (values: Values & { readonly scope?: readonly string[] | undefined }): Values =>
  Object.fromEntries(
    Object.entries(CLIENT_OPTIONS).flatMap(([key, option]) => {
      const value = option === 'scope' && values.scope ? words(values.scope) : values[option]
      return value === undefined ? [] : [[key, value]]
    }),
  )

/** The lines of the help. */
export const CLIENT_OPTIONS_HELP = [
  '--kind customer|partner|public    password grant, code flow, or code flow without a secret',
  '--name NAME                       the consent page shows it',
  '--scope VALUE …                   scope values that its tokens may have; separate them by spaces, or repeat it',
  '--business CODE                   a business that its tokens may be for; may be repeated',
  '--grant GRANT                     instead of the grants of its kind; may be repeated',
  '--agreement DAY                   when the agreement was signed; the password grant needs it',
  '--redirect-uri URI                where authorization codes may be sent; may be repeated',
  '--post-logout-redirect-uri URI    where browsers may be sent after logout; may be repeated',
  '--default-scope SCOPE             the scope of requests that name none',
  '--access-token-lifetime DURATION  instead of the lifetime of the service, such as 10m',
  '--id-token-algorithm ES256|RS256  the signature of its id_tokens',
  '--secret-post                     allow the secret in the request body',
  '--no-require-pkce                 allow the code flow without PKCE',
  '--resource                        allow it to introspect tokens of other clients',
]
