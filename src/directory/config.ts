import {
  choice,
  day,
  duration,
  flag,
  list,
  mapOf,
  MARK,
  optional,
  path,
  secret,
  section,
  text,
  Type,
  type Static,
} from '../config/pieces.ts'

/**
 * A business or fund code: it stands in a path segment as it is and in a scope token (C3.4, C5.4), so it is made of
 * RFC 3986's pchar without ";" and "%", and is no dot segment.
 */
export const CODE_PATTERN = "^(?!\\.{1,2}$)[A-Za-z0-9._~!$&'()*+,=:@-]{1,64}$"
/** RFC 6749 appendix A.1, without the colon that ends the id in Basic credentials (RFC 7617 §2), and without spaces. */
const CLIENT_ID_PATTERN = '^[!-9;-~]{1,128}$'
/** Whatever a person can type on one line; no space at either end. */
const USERNAME_PATTERN = '^(?! )[^\\p{Cc}\\p{Cs}]{1,128}(?<! )$'
/** OIDC Core §2: at most 255 ASCII characters. It goes to backends in a header (C8.2). */
const SUBJECT_PATTERN = '^[!-~]{1,255}$'

export const GRANTS = ['password', 'authorization_code', 'refresh_token'] as const

const claim = (description: string) => optional(text({ description }))
const code = (description: string) =>
  text({ description, pattern: CODE_PATTERN, expected: 'a code that can stand in a path, such as "ACME"' })

const address = section(
  {
    street_address: claim('Street, house number and what belongs to it; may hold line ends.'),
    locality: claim('City.'),
    region: claim('State or province.'),
    postal_code: claim('Postal code.'),
    country: claim('Country.'),
  },
  { description: 'An address, in the words of OIDC Core §5.1.1.' },
)

export type Funds = 'any' | readonly string[]

/** Checked in compile-businesses.ts; the branches are for the editor. */
const funds = Type.Unsafe<Funds>({
  [MARK]: 'opaque',
  anyOf: [{ const: 'any' }, { type: 'array', items: { type: 'string' } }],
  description:
    'The codes of its funds; or `any`, where only the backend knows them: an unknown fund is then its 404. A code that can be no part of a scope value (RFC 6749 §3.3) is 404 in any case.',
})

const business = {
  name: text({ description: 'For people, and the claim `service_profile.business_name`.' }),
  funds,
  address: optional(address),
  phoneNumber: optional(text({ description: 'The claim `service_profile.business_phone_number`.' })),
}

const role = section({
  scopes: list(text({ description: 'A scope value.' }), {
    unique: true,
    description: 'Scope values that a user in this role may give to a client. Implication applies.',
  }),
})

const client = {
  kind: choice(['customer', 'partner', 'public'], {
    description:
      '`customer`: may use the password grant. `partner`: code flow. `public`: code flow without a secret.',
  }),
  name: text({ description: 'For people: the consent page shows it.' }),
  secrets: list(secret({ plain: true, description: '`sha256:…` or `$argon2id$…`.' }), {
    default: [],
    description: 'Hashes of its secrets; two while one is being replaced, none for a public client.',
  }),
  grants: list(choice(GRANTS, { description: 'A grant.' }), {
    minItems: 1,
    unique: true,
    description: 'The grants that it may use.',
  }),
  agreement: optional(
    day({
      description:
        'When the customer agreement was signed. Before that day (UTC), and without it, no password grant.',
    }),
  ),
  businesses: list(text({ description: 'A business code.' }), {
    default: [],
    unique: true,
    description: 'The businesses that it may be given a target for.',
  }),
  scopes: list(text({ description: 'A scope value.' }), {
    unique: true,
    description: 'Scope values that it may be given. Implication applies.',
  }),
  defaultScope: optional(
    text({ description: 'What a request without `scope` asks for, space-delimited; may hold a target.' }),
  ),
  redirectUris: list(text({ description: 'An absolute URI.' }), {
    default: [],
    unique: true,
    description:
      'Where a code may be sent, compared exactly. A public client may have loopback addresses, whose port is free, and schemes of its own; there the user is asked every time (RFC 8252 §8.6).',
  }),
  postLogoutRedirectUris: list(text({ description: 'An absolute URI.' }), {
    default: [],
    unique: true,
    description: 'Where a browser may be sent after logout.',
  }),
  disabled: flag({ default: false, description: 'Refuses everything it asks for.' }),
  accessTokenLifetime: optional(
    duration({ description: 'Of its access tokens, at most `1d`; else the one of the service.' }),
  ),
  idTokenAlgorithm: optional(
    choice(['ES256', 'RS256'], { description: 'What signs its id_tokens. RS256 if left out.' }),
  ),
  secretPost: flag({ default: false, description: 'Allows `client_secret_post`.' }),
  requirePkce: flag({ default: false, description: 'Refuses code requests without PKCE.' }),
  resource: flag({
    default: false,
    description: "A resource server: may introspect other clients' tokens.",
  }),
}

const user = {
  subject: text({
    pattern: SUBJECT_PATTERN,
    expected: 'printable ASCII without spaces, at most 255 characters',
    description: 'The claim `sub`: never changed and never given to another user. Not the user name.',
  }),
  password: secret({
    plain: true,
    description: 'Its hash, `$argon2id$…`; `postern hash-password` makes one.',
  }),
  customers: list(text({ description: 'A client id.' }), {
    default: [],
    unique: true,
    description: 'The customer clients through which the user may log in by password.',
  }),
  disabled: flag({ default: false, description: 'Refuses every login and token.' }),
  locked: flag({
    default: false,
    description:
      'May hold nothing, as if disabled: logins and refresh tokens are refused, and what they hold is ended. Set by an administrator only.',
  }),
  access: mapOf(text({ description: 'The name of a role.' }), {
    keys: CODE_PATTERN,
    default: {},
    description: 'The role at each business.',
  }),
  claims: section(
    {
      name: claim('Full name.'),
      given_name: claim('Given name.'),
      middle_name: claim('Middle name.'),
      family_name: claim('Family name.'),
      gender: claim('Gender.'),
      email: claim('E-mail address.'),
      address: optional(address),
      phone_number: claim('Phone number.'),
    },
    { default: {}, description: 'What is known of the person.' },
  ),
}

/** Where a record stands in a file, its key stands inside. */
export const businessRecordSchema = section({ code: code('The business code.'), ...business })
export const clientRecordSchema = section({
  id: text({ pattern: CLIENT_ID_PATTERN, description: 'The client id.' }),
  ...client,
})
export const userRecordSchema = section({
  username: text({ pattern: USERNAME_PATTERN, description: 'The user name.' }),
  ...user,
})

export type BusinessRecord = Static<typeof businessRecordSchema>
export type ClientRecord = Static<typeof clientRecordSchema>
export type UserRecord = Static<typeof userRecordSchema>

const records = (what: string, key: string) =>
  optional(
    path({
      description: `A file with more ${what}, as JSON Lines: one object a line, with its key as \`${key}\`.`,
    }),
  )

export const directorySchema = section(
  {
    businesses: mapOf(section(business), {
      keys: CODE_PATTERN,
      default: {},
      description: 'The businesses, by code. Codes compare exactly.',
    }),
    roles: mapOf(role, {
      keys: '^\\S(?:.*\\S)?$',
      default: {},
      description: 'What users may do at a business, by name; the claim `service_profile.service_role`.',
    }),
    clients: mapOf(section(client), {
      keys: CLIENT_ID_PATTERN,
      default: {},
      description: 'The OAuth clients, by client id.',
    }),
    users: mapOf(section(user), {
      keys: USERNAME_PATTERN,
      default: {},
      description: 'The users, by user name.',
    }),
    files: section(
      {
        businesses: records('businesses', 'code'),
        clients: records('clients', 'id'),
        users: records('users', 'username'),
      },
      { default: {}, description: 'Large directories: what is too much for YAML (100,000 users, say).' },
    ),
  },
  { default: {}, description: 'Who exists: businesses and their funds, roles, clients, users.' },
)

export type DirectoryConfig = Static<typeof directorySchema>
