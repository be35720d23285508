/** The kinds of records that say where calls may go, and who may do what there: businesses, their funds, and roles. */
import type { Access } from '../../../base/contracts/people/people.ts'
import type { ConfiguredBusiness } from '../../../base/contracts/people/places.ts'
import { checkScopes } from '../records/references.ts'
import {
  BUSINESS,
  type BusinessRecord,
  businessSchema,
  FUND,
  fundKey,
  type FundRecord,
  fundSchema,
  readBusiness,
  readFund,
  readRole,
  ROLE,
  type RoleRecord,
  roleSchema,
} from '../records/schema.ts'
import { checkWrittenValues, keepValues, shownValues } from '../records/values.ts'
import { DirectoryRefusal, type EditingParts } from './editing.ts'
import { only, type RecordKind } from './record-kind.ts'

/** By code. `disable` ends the tokens for the business, `remove` its consents and funds too. */
export const BUSINESS_RECORDS: RecordKind<BusinessRecord, ConfiguredBusiness> = {
  noun: 'business',
  plural: 'businesses',
  kind: BUSINESS,
  schema: businessSchema,
  names: ['code'],
  columns: ['code', 'source', 'state', 'funds', 'name'],
  texts: {
    add: 'Add a business',
    disable: 'Refuse all calls and tokens for it, and end what was issued for it; consents stay',
    samples: {
      name: 'INITECH',
      add: '--name Initech',
      edit: "--name 'Initech Ltd'",
      list: '--limit 20',
    },
  },
  object: ([business]) => ({ kind: 'business', business }),
  read: readBusiness,
  configured: ({ configured }) => configured.businesses,
  asRecord: ({ code, name, address, phoneNumber, funds, values }) => ({
    code,
    name,
    funds: funds === 'any' ? 'any' : 'listed',
    disabled: false,
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
    ...(values !== undefined && { values: shownValues(values) }),
  }),
  insteadOfSwitch: (code) => `, or close it by \`postern maintenance on --business ${code}\``,
  check: (record, { namedValues: named, problemsOfValues }, problems, before) =>
    checkWrittenValues(record, { before, named, problemsOfValues }, problems),
  keep: async ({ values, ...record }, { sealer }, stands) =>
    values === undefined
      ? record
      : { ...record, values: await keepValues(values, { code: record.code, sealer, stands }) },
  // Its funds have records of their own, so it loses none of them by a change of its own.
  holdings: (record, code) => ({
    businesses: only(code, record && { funds: 'any', disabled: record.disabled }),
  }),
  clear: (business, { store }) => store.removeBy(FUND, { business }),
}

interface ConfiguredFund {
  readonly business: string
  readonly code: string
}

/** The funds of the configuration, by key: made once for each configuration. */
const fundsOf = new WeakMap<EditingParts['configured'], ReadonlyMap<string, ConfiguredFund>>()

function configuredFunds({ configured }: EditingParts): ReadonlyMap<string, ConfiguredFund> {
  const known = fundsOf.get(configured)
  if (known !== undefined) return known
  const funds = [...configured.businesses.values()].flatMap(({ code: business, funds }) =>
    funds === 'any' ? [] : [...funds].map((code) => [fundKey(business, code), { business, code }] as const),
  )
  const byKey = new Map(funds)
  fundsOf.set(configured, byKey)
  return byKey
}

/** By `{business}/{fund}`. A disabled or removed fund is unknown (C4.8); the access tokens for it end. */
export const FUND_RECORDS: RecordKind<FundRecord, ConfiguredFund> = {
  noun: 'fund',
  plural: 'funds',
  kind: FUND,
  schema: fundSchema,
  names: ['business', 'code'],
  columns: ['business', 'code', 'source', 'state', 'name'],
  texts: {
    add: 'Add a fund to a business of the store that lists its funds',
    disable: 'Refuse all calls and tokens for it',
    samples: {
      name: 'INITECH SUPER1',
      add: "--name 'Super One'",
      edit: "--name 'Super 1'",
      list: 'INITECH',
    },
  },
  object: ([business, fund]) => ({ kind: 'fund', business, fund }),
  read: readFund,
  indexes: ({ business }) => ({ business }),
  configured: configuredFunds,
  asRecord: (fund) => ({ ...fund, disabled: false }),
  taken: (key, { configured }) => {
    const [business = ''] = key.split('/')
    return configured.businesses.has(business)
      ? `Business "${business}" is in the configuration, and its funds with it: edit them there.`
      : undefined
  },
  admit: async ({ business }, { store }) => {
    const entry = await store.find(BUSINESS, business)
    if (entry === undefined)
      throw new DirectoryRefusal(`There is no business "${business}".`, undefined, 'missing')
    if (readBusiness(entry.value).funds === 'any')
      throw new DirectoryRefusal(
        `Business "${business}" has \`funds: any\`: only the backend knows which funds there are.`,
      )
  },
  holdings: (record, key) => {
    const [business = '', code = ''] = key.split('/')
    const funds = new Set(record?.disabled === false ? [code] : [])
    return { businesses: new Map([[business, { funds }]]) }
  },
}

/** By name. A change that takes scopes away ends the access tokens issued by the role (C6.3.6). */
export const ROLE_RECORDS: RecordKind<RoleRecord, Access> = {
  noun: 'role',
  plural: 'roles',
  kind: ROLE,
  schema: roleSchema,
  names: ['name'],
  columns: ['name', 'source', 'state', 'scopes'],
  texts: {
    add: 'Add a role',
    disable: 'Users with this role may do nothing at the business, from their next token on',
    samples: {
      name: 'Clerk',
      add: "--scope 'fund.read business.fund.list'",
      edit: '--scope fund.read',
      list: '--json',
    },
  },
  object: ([id]) => ({ kind: 'role', id }),
  read: readRole,
  configured: ({ configured }) => configured.roles,
  asRecord: ({ role, scopes }) => ({ name: role, scopes, disabled: false }),
  check: ({ scopes }, { catalogue }, problems) => checkScopes(scopes, catalogue, ['scopes'], problems),
  holdings: (record, name) => ({
    roles: only(name, record?.disabled === false && { role: name, scopes: record.scopes }),
  }),
}
