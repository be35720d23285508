/** The key `auth` of forwarding backends: how an upstream knows Postern (C8.7). */
import { choice, optional, path, secret, section, text, url, type Static } from '../../../config/schema.ts'
import { TOKEN_PATTERN } from '../../../http/header-text.ts'

const basic = section(
  {
    user: text({ description: 'Name of the user. Contains no colon.' }),
    password: secret({ description: 'Its password.' }),
  },
  { description: 'Sends `Authorization: Basic …`, with user and password in UTF-8.' },
)

const header = section(
  {
    name: text({
      pattern: TOKEN_PATTERN,
      expected: 'a header’s name, such as "X-Api-Key"',
      description: 'Name of the header. A header of this name that a client sends is dropped.',
    }),
    value: secret({ description: 'Its value: visible ASCII characters and spaces between them.' }),
  },
  { description: 'Sends one header with a secret value, such as an API key.' },
)

const oauth2 = section(
  {
    tokenUrl: url({ description: 'URL of the token endpoint. https, or http on loopback.' }),
    clientId: text({ description: 'Client id that Postern has there.' }),
    clientSecret: secret({ description: 'The client’s secret.' }),
    clientAuthentication: choice(['basic', 'post'], {
      default: 'basic',
      description:
        'Where the client’s id and secret stand: in `Authorization: Basic`, or in the form (`post`).',
    }),
    scope: optional(
      text({
        pattern: '^[!#-\\[\\]-~]+( [!#-\\[\\]-~]+)*$',
        expected: 'scope values, separated by single spaces',
        description: 'The `scope` to ask for.',
      }),
    ),
    audience: optional(text({ description: 'The `audience` to ask for. Some issuers expect it.' })),
    resource: optional(
      text({ description: 'The `resource` to ask for (RFC 8707). Some issuers expect it.' }),
    ),
    tls: section(
      {
        ca: optional(
          path({ description: 'PEM file of certificate authorities to trust instead of the system’s.' }),
        ),
      },
      { default: {}, description: 'TLS to the token endpoint.' },
    ),
  },
  {
    description:
      'Gets access tokens by the client credentials grant, and sends them as `Authorization: Bearer …`.',
  },
)

export const authSchema = section(
  {
    basic: optional(basic),
    bearer: optional(secret({ description: 'Sends `Authorization: Bearer …` with this token.' })),
    header: optional(header),
    oauth2: optional(oauth2),
  },
  { description: 'Credentials that the service gets with each call. Exactly one kind.' },
)

export type AuthConfig = Static<typeof authSchema>
export type OAuth2Config = Static<typeof oauth2>
