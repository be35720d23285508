import {
  flag,
  kinds,
  list,
  mapOf,
  opaque,
  optional,
  path,
  secret,
  section,
  text,
  type Static,
} from '../config/schema.ts'
import { moduleKeys } from '../config/modules/source.ts'
import { client } from './client-schema.ts'
import {
  claimOfName,
  CLIENT_ID_EXPECTED,
  CLIENT_ID_PATTERN,
  code,
  CODE_PATTERN,
  nameForPeople,
  ROLE_EXPECTED,
  ROLE_PATTERN,
  SUBJECT_PATTERN,
  USERNAME_EXPECTED,
  USERNAME_PATTERN,
} from './names.ts'

const claim = (description: string) => optional(text({ description }))

export const address = section(
  {
    street_address: claim('Street and house number. May have several lines.'),
    locality: claim('City.'),
    region: claim('State or province.'),
    postal_code: claim('Postal code.'),
    country: claim('Country.'),
  },
  { description: 'An address, with the members of OpenID Connect Core §5.1.1.' },
)

export type Funds = 'any' | readonly string[]

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

export const role = {
  scopes: list(text({ description: 'A scope value.' }), {
    unique: true,
    description:
      'Scope values that a user with this role may grant to a client, with everything that they imply.',
  }),
}

const subject = text({
  pattern: SUBJECT_PATTERN,
  expected: 'printable ASCII without spaces, at most 255 characters',
  description: 'The claim `sub`. Never change it, and never give it to another user.',
})

/** What Postern knows of a user, wherever the password is. */
const personal = {
  customers: list(text({ description: 'A client id.' }), {
    default: [],
    unique: true,
    description: 'Customer clients that the user may log in through, by the password grant.',
  }),
  disabled: flag({ default: false, description: 'Refuse all logins and tokens of the user.' }),
  locked: flag({
    default: false,
    description: 'As `disabled`. An administrator locks an account; failed logins never do.',
  }),
  access: mapOf(text({ description: 'The name of a role.' }), {
    keys: CODE_PATTERN,
    default: {},
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
    { default: {}, description: 'Claims about the person.' },
  ),
}

const user = {
  subject,
  password: secret({
    plain: true,
    description: 'Hash of the password, `$argon2id$…`, made by `postern hash-password`.',
  }),
  ...personal,
}

/** A record in a file contains its key. */
export const businessRecordSchema = section({ code: code('The business code.'), ...business })
export const userRecordSchema = section({
  username: text({ pattern: USERNAME_PATTERN, expected: USERNAME_EXPECTED, description: 'The user name.' }),
  ...user,
})

/** A user of `people`, whose password Postern never sees the hash of. */
export const personRecordSchema = section({
  username: text({ pattern: USERNAME_PATTERN, expected: USERNAME_EXPECTED, description: 'The user name.' }),
  subject,
  ...personal,
})

export type BusinessRecord = Static<typeof businessRecordSchema>
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
    businesses: mapOf(section(business), {
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
      description: 'The OAuth clients, by client id.',
    }),
    users: mapOf(section(user), {
      keys: USERNAME_PATTERN,
      expectedKeys: USERNAME_EXPECTED,
      default: {},
      description: 'The users, by user name.',
    }),
    people: optional(
      kinds(
        {
          module: section(moduleKeys('`findUserByName`, `findUserBySubject` and `verifyPassword`'), {
            description: 'Code of your own that finds users and verifies their passwords.',
          }),
        },
        { description: 'Users that live in another system. Those of `users` and of the store come first.' },
      ),
    ),
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
export type PeopleConfig = NonNullable<DirectoryConfig['people']>
