import {
  choice,
  day,
  duration,
  flag,
  list,
  literalText,
  mapOf,
  opaque,
  optional,
  path,
  secret,
  section,
  type Static,
  text,
  textOrSecret,
  type TProperties,
  type TSchema,
  withForms,
  withKeys,
} from '../../../base/config/schema.ts'
import { type Client, SECRET_AUTH_METHODS } from '../../../base/contracts/people/people.ts'
import { VALUE_NAME_PATTERN } from '../../../base/contracts/people/places.ts'
import type { StoredValue } from '../../../base/contracts/records/store.ts'
import { DIRECTION_CONTROLS } from '../../../base/kernel/clean-text.ts'
import { defaultsOf, type RecordProblems } from './read-records.ts'

/** A code, as it is used in paths and scope values (C3.4, C5.4): pchar of RFC 3986 without `;` and `%`, no dot segment. */
export const CODE_PATTERN = "^(?!\\.{1,2}$)[A-Za-z0-9._~!$&'()*+,=:@-]{1,64}$"
/** Names are part of a path of the admin API, where a client removes dot segments, encoded ones too (RFC 3986 §6.2.2.3). */
const NO_DOT_SEGMENT = '(?!\\.{1,2}$)'
/** RFC 6749 appendix A.1, without the colon that ends the id in Basic credentials (RFC 7617 §2), and without spaces. */
export const CLIENT_ID_PATTERN = `^${NO_DOT_SEGMENT}[!-9;-~]{1,128}$`
/** Anything that a person can type on one line; no space at either end. */
export const USERNAME_PATTERN = `^${NO_DOT_SEGMENT}(?! )[^\\p{Cc}\\p{Cs}${DIRECTION_CONTROLS}]{1,128}(?<! )$`
/** No control character, no half of a character, no end of a line, and none that changes the direction of the text around it. */
const ON_ONE_LINE = `[^\\p{Cc}\\p{Cs}\\u2028\\u2029${DIRECTION_CONTROLS}]`
/** OIDC Core §2: at most 255 ASCII characters. It goes to backends in a header (C8.2). */
export const SUBJECT_PATTERN = '^[!-~]{1,255}$'

/** Any text that a person can read on one line; no space at either end. As long as a user name: it is part of a path too. */
const ROLE_PATTERN = `^${NO_DOT_SEGMENT}(?!\\s)${ON_ONE_LINE}{1,128}(?<!\\s)$`

const WITHOUT_CONTROLS = 'without characters that steer the direction of writing'

const CLIENT_ID_EXPECTED =
  'a client id of at most 128 printable ASCII characters, without ":", and not "." or ".."'
export const USERNAME_EXPECTED = `a user name of at most 128 characters on one line, ${WITHOUT_CONTROLS}, and not "." or ".."`
const ROLE_EXPECTED = `a name of at most 128 characters on one line, ${WITHOUT_CONTROLS}, and not "." or ".."`

const code = (description: string) =>
  text({ description, pattern: CODE_PATTERN, expected: 'a code that can stand in a path, such as "ACME"' })

/** The name of a business, a fund or a client: it is shown on pages and in tables. */
export const DISPLAY_NAME_PATTERN = `^${ON_ONE_LINE}{1,256}$`
export const NAME_EXPECTED = `a text of at most 256 characters on one line, ${WITHOUT_CONTROLS}`

const nameForPeople = (description: string) =>
  text({ description, pattern: DISPLAY_NAME_PATTERN, expected: NAME_EXPECTED })

const claimOfName = (description: string) =>
  text({ description, pattern: `^[^${DIRECTION_CONTROLS}]*$`, expected: `a name ${WITHOUT_CONTROLS}` })

const switchedOff = (description: string) => flag({ default: false, takesAway: { to: true }, description })

const GRANTS = ['password', 'authorization_code', 'refresh_token', 'client_credentials'] as const

const page = (description: string) =>
  literalText({
    pattern: '^https?://[^\\s/@#?<>"]+(/[^\\s<>"]*)?$',
    expected: 'an http:// or https:// URL',
    value: 'URI',
    description,
  })

const client = {
  kind: choice(['customer', 'partner', 'public', 'machine'], {
    description:
      '`customer`: may use the password grant. `partner`: code flow. `public`: code flow without a secret. `machine`: acts for itself, by the grant `client_credentials` alone.',
  }),
  name: nameForPeople('Name for people. The consent page shows it.'),
  secrets: list(secret({ plain: true, description: '`sha256:…` or `$argon2id$…`.' }), {
    default: [],
    hidden: 'a secret is generated, and replaced by another one',
    description: 'Hashes of its secrets: two while one replaces the other, none for a public client.',
  }),
  authentication: optional(
    list(choice(SECRET_AUTH_METHODS, { description: 'A method of RFC 7591 §2.' }), {
      minItems: 1,
      unique: true,
      takesAway: 'less',
      description: 'How it may authenticate. Default: both methods.',
    }),
  ),
  grants: list(choice(GRANTS, { description: 'A grant.' }), {
    minItems: 1,
    unique: true,
    option: 'grant',
    takesAway: 'less',
    description: 'Grants that it may use.',
  }),
  agreement: optional(
    day({
      value: 'DAY',
      description:
        'Day on which the customer agreement was signed. The password grant works from then on (UTC).',
    }),
  ),
  businesses: list(text({ description: 'A business code.' }), {
    default: [],
    unique: true,
    option: 'business',
    value: 'CODE',
    takesAway: 'less',
    description: 'Businesses that its tokens may name as their target.',
  }),
  scopes: list(text({ description: 'A scope value.' }), {
    unique: true,
    option: 'scope',
    takesAway: 'less',
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
    option: 'redirect-uri',
    value: 'URI',
    takesAway: 'less',
    description: 'URIs that an authorization code may be sent to. They are compared exactly.',
  }),
  postLogoutRedirectUris: list(text({ description: 'An absolute URI.' }), {
    default: [],
    unique: true,
    option: 'post-logout-redirect-uri',
    value: 'URI',
    takesAway: 'less',
    description: 'URIs that a browser may be sent to after logout.',
  }),
  policyUri: optional(page('Address of its privacy policy. The consent page links to it.')),
  tosUri: optional(page('Address of its terms of service. The consent page links to it.')),
  disabled: switchedOff('Refuse all its requests.'),
  accessTokenLifetime: optional(
    duration({
      takesAway: 'less',
      description: 'Lifetime of its access tokens, at most `1d`. Default: `identity.accessToken.lifetime`.',
    }),
  ),
  idTokenAlgorithm: optional(
    choice(['ES256', 'RS256'], {
      description: 'Signature algorithm of its id_tokens. Default: `identity.idToken.algorithm`.',
    }),
  ),
  secretPost: optional(
    flag({
      retired: true,
      description:
        'Retired, write `authentication`. `false` means `client_secret_basic` alone, `true` means `client_secret_post` too.',
    }),
  ),
  requirePkce: flag({
    default: false,
    takesAway: { to: true },
    description:
      'Require PKCE, also of a request for `openid` with a `nonce`. Public clients always need it.',
  }),
  requireBinding: flag({
    default: true,
    takesAway: { to: true },
    description:
      'Require PKCE or, with `openid`, a `nonce`. `false` is for clients with a secret that can do neither: an injected code is not noticed then.',
  }),
  answerScope: choice(['granted', 'asked'], {
    default: 'granted',
    description:
      'The `scope` of its token answers: as granted, with the chosen business, or in the words that it asked with (`target:b`), and the business as `target`.',
  }),
  strictRfc6749: optional(
    flag({
      description:
        'Answer it by RFC 6749 to the letter (`no-store`, `Bearer`). Default: `identity.strictRfc6749`, which also decides how failed authentication is answered.',
    }),
  ),
  resource: flag({
    default: false,
    takesAway: { to: false },
    description: 'It is a resource server: it may introspect tokens of other clients.',
  }),
}

/** A record in a file contains its key. */
export const clientRecordSchema = section({
  id: text({ pattern: CLIENT_ID_PATTERN, expected: CLIENT_ID_EXPECTED, description: 'The client id.' }),
  ...client,
})

export type ClientRecord = Static<typeof clientRecordSchema>

/** A check of what an extension has added to clients. */
export type ClientCheck = (client: ClientRecord, problems: RecordProblems) => void

/** Effects of an extension's members of a client on those of the core. */
export interface ClientRules {
  /** Members of the client that replace those of the core. */
  readonly complete: (record: ClientRecord) => Partial<Client>
  /** Credentials in place of a secret: in words, and whether a record has them. */
  readonly credentials: { readonly words: string; readonly areIn: (record: ClientRecord) => boolean }
}

/** The record of a client with the members that extensions add. */
export interface ClientForm {
  readonly schema: typeof clientRecordSchema
  readonly checks: readonly ClientCheck[]
  readonly rules: readonly ClientRules[]
}

type Keys = Readonly<Record<string, TProperties>>

/** The part of an extension's settings that concerns clients. */
interface AddedToClients {
  readonly keys?: Keys
  readonly forms?: Keys
  readonly clientChecks?: readonly ClientCheck[]
  readonly clientRules?: ClientRules
}

const ofClients = (keys: Keys | undefined): TProperties => keys?.['directory.clients.*'] ?? {}

/** The form of clients with what extensions add to it. */
export const clientFormOf = (added: readonly AddedToClients[]): ClientForm => ({
  schema: added.reduce(
    (of, { keys, forms }) => withKeys(withForms(of, [], ofClients(forms)), [], ofClients(keys)),
    clientRecordSchema,
  ),
  checks: added.flatMap(({ clientChecks = [] }) => clientChecks),
  rules: added.flatMap(({ clientRules = [] }) => clientRules),
})

/** The form without extensions. */
export const CORE_FORM = clientFormOf([])

const claim = (description: string) => optional(text({ description }))

const address = section(
  {
    street_address: claim('Street and house number. May have several lines.'),
    locality: claim('City.'),
    region: claim('State or province.'),
    postal_code: claim('Postal code.'),
    country: claim('Country.'),
  },
  { description: 'An address, with the members of OpenID Connect Core §5.1.1.' },
)

type Funds = 'any' | readonly string[]

/** Checked in compile-records.ts. The alternatives here are for editors that read the schema. */
const funds = opaque<Funds>({
  anyOf: [{ const: 'any' }, { type: 'array', items: { type: 'string' } }],
  description: 'Codes of its funds, or `any` if only the backend knows them.',
})

const business = {
  name: nameForPeople('Name for people, and the claim `service_profile.business_name`.'),
  funds,
  address: optional(address),
  phoneNumber: optional(text({ description: 'The claim `service_profile.business_phone_number`.' })),
}

const NAMED = {
  keys: VALUE_NAME_PATTERN,
  expectedKeys: 'a name of at most 64 letters, digits, "_" and "-" that begins with a letter',
} as const

/** Checked further in values.ts. */
const values = optional(
  mapOf(
    textOrSecret({ description: 'A text of at most 1,024 bytes; a secret if it comes from elsewhere.' }),
    {
      ...NAMED,
      option: 'value',
      // Some are secrets.
      personal: true,
      description: 'What services know the business by, as `{business.NAME}` in templates. At most 64.',
    },
  ),
)

const valuesInFile = optional(
  mapOf(
    literalText({
      pattern: '^(?!$)',
      expected: 'a text',
      description: 'A text of at most 1,024 bytes.',
    }),
    { ...NAMED, description: 'What services know the business by, as `{business.NAME}` in templates.' },
  ),
)

const role = {
  scopes: list(text({ description: 'A scope value.' }), {
    unique: true,
    option: 'scope',
    takesAway: 'less',
    description:
      'Scope values that a user with this role may grant to a client, with everything that they imply.',
  }),
}

const username = text({
  pattern: USERNAME_PATTERN,
  expected: USERNAME_EXPECTED,
  description: 'The user name.',
})

const subject = text({
  pattern: SUBJECT_PATTERN,
  expected: 'printable ASCII without spaces, at most 255 characters',
  fixed: true,
  description: 'The claim `sub`. Never change it, and never give it to another user.',
})

const personal = {
  customers: list(text({ description: 'A client id.' }), {
    default: [],
    unique: true,
    option: 'customer',
    value: 'ID',
    takesAway: 'less',
    description: 'Customer clients that the user may log in through, by the password grant.',
  }),
  disabled: switchedOff('Refuse all logins and tokens of the user.'),
  locked: switchedOff('As `disabled`. An administrator locks an account; failed logins never do.'),
  access: mapOf(text({ description: 'The name of a role.' }), {
    keys: CODE_PATTERN,
    default: {},
    value: 'BUSINESS=ROLE',
    takesAway: 'less',
    description: 'Role of the user at each business.',
  }),
  claims: section(
    {
      name: optional(claimOfName('Full name.')),
      given_name: optional(claimOfName('Given name.')),
      middle_name: optional(claimOfName('Middle name.')),
      family_name: optional(claimOfName('Family name.')),
      gender: claim('Gender.'),
      email: claim('E-mail address.'),
      address: optional(address),
      phone_number: claim('Phone number.'),
    },
    { default: {}, option: 'claim', personal: true, description: 'Claims about the person.' },
  ),
}

const user = {
  subject,
  password: secret({
    plain: true,
    hidden: 'a password is set by an act of its own',
    description: 'Hash of the password, `$argon2id$…`, made by `postern hash-password`.',
  }),
  ...personal,
}

/** A record in a file contains its key. */
export const businessRecordSchema = section({
  code: code('The business code.'),
  ...business,
  values: valuesInFile,
})
export const userRecordSchema = section({
  username,
  ...user,
})

/** A user of another system, whose password Postern never sees the hash of. */
export const personRecordSchema = section({
  username,
  subject,
  ...personal,
})

const configuredBusiness = section({ ...business, values })

export type ConfiguredBusinessRecord = Static<typeof configuredBusiness> & { readonly code: string }
export type UserRecord = Static<typeof userRecordSchema>
export type PersonRecord = Static<typeof personRecordSchema>

const records = (what: string, key: string) =>
  optional(
    path({
      description: `File with more ${what}, as JSON Lines: one object a line, its key as \`${key}\`.`,
    }),
  )

export const directorySchema = section(
  {
    businesses: mapOf(configuredBusiness, {
      keys: CODE_PATTERN,
      default: {},
      description: 'The businesses, by code. Upper and lower case differ.',
    }),
    roles: mapOf(section(role), {
      keys: ROLE_PATTERN,
      expectedKeys: ROLE_EXPECTED,
      default: {},
      description:
        'Roles that users have at a business, by name. The name is the claim `service_profile.service_role`.',
    }),
    clients: mapOf(section(client), {
      keys: CLIENT_ID_PATTERN,
      expectedKeys: CLIENT_ID_EXPECTED,
      default: {},
      takesAway: 'less',
      description: 'The OAuth clients, by client id.',
    }),
    users: mapOf(section(user), {
      keys: USERNAME_PATTERN,
      expectedKeys: USERNAME_EXPECTED,
      default: {},
      takesAway: 'less',
      description: 'The users, by user name.',
    }),
    files: section(
      {
        businesses: records('businesses', 'code'),
        clients: records('clients', 'id'),
        users: records('users', 'username'),
      },
      { default: {}, description: 'Files for large directories, such as 100,000 users.' },
    ),
  },
  { default: {}, description: 'Businesses with their funds, roles, clients and users.' },
)

export type DirectoryConfig = Static<typeof directorySchema>

// In the store:

export const BUSINESS = 'directory_business'
export const FUND = 'directory_fund'
export const ROLE = 'directory_role'

export const businessSchema = section({
  code: code('The business code.'),
  ...business,
  funds: choice(['listed', 'any'], {
    default: 'listed',
    takesAway: { to: 'listed' },
    description: '`listed`: those that are added. `any`: only the backend knows which funds there are.',
  }),
  values,
  disabled: switchedOff('Refuse all calls and tokens for the business.'),
})

/** A fund has a record of its own, so that a business may have thousands of them. */
export const fundSchema = section({
  business: code('The code of its business.'),
  code: code('The fund code.'),
  name: optional(nameForPeople('Name for people.')),
  disabled: switchedOff('Refuse all calls and tokens for the fund.'),
})

export const roleSchema = section({
  name: text({
    pattern: ROLE_PATTERN,
    expected: ROLE_EXPECTED,
    description: 'The name of the role, and the claim `service_profile.service_role`.',
  }),
  ...role,
  disabled: switchedOff('Users with this role may do nothing at the business.'),
})

export type BusinessRecord = Static<typeof businessSchema>
export type FundRecord = Static<typeof fundSchema>
export type RoleRecord = Static<typeof roleSchema>

/** The key of a fund: no code has a slash. */
export const fundKey = (business: string, fund: string): string => `${business}/${fund}`

/** A type alias, because an interface is not assignable to StoredValue. */
type Stored<R> = { readonly record: R }

export const stored = <R extends object>(record: R): Stored<R> => ({ record })

/** The record of a stored value, with defaults for what an older version did not write. */
const readerOf = <T extends TSchema>(schema: T): ((value: StoredValue) => Static<T>) => {
  const defaults = defaultsOf(schema)
  return (value) => ({ ...defaults, ...(value as Stored<object>).record }) as Static<T>
}

const readWhole = readerOf(businessSchema)

/** The record of a business. It says which values are sealed, and does not open them. */
export function readBusiness(value: StoredValue): BusinessRecord {
  const { values: kept, ...record } = readWhole(value)
  if (kept === undefined) return record
  const shown = Object.entries(kept).map(([name, text]) => [
    name,
    typeof text === 'string' ? text : { secret: true },
  ])
  return { ...record, values: Object.fromEntries(shown) as NonNullable<BusinessRecord['values']> }
}

export const readFund = readerOf(fundSchema)
export const readRole = readerOf(roleSchema)
