/** The editors of everything in the directory, as one kind of thing (C11.5.1). */
import type { Access } from '../../../base/contracts/people/people.ts'
import type { ConfiguredBusiness } from '../../../base/contracts/people/places.ts'
import type { PageQuery } from '../../../base/contracts/records/store.ts'
import { ClientEditor } from './client-editor.ts'
import { checkScopes } from '../records/references.ts'
import {
  type ChangesOf,
  DirectoryRefusal,
  type EditingParts,
  type FoundRecord,
  type ListedPage,
  type PlannedAdd,
  type PlannedChange,
  type PlannedStep,
} from './editing.ts'
import { holdingsOf } from '../records/holdings.ts'
import type { NounName } from './nouns.ts'
import { only, RecordEditor, type RecordKind } from './record-editor.ts'
import {
  BUSINESS,
  type BusinessRecord,
  FUND,
  fundKey,
  type FundRecord,
  readBusiness,
  readFund,
  readRole,
  ROLE,
  type RoleRecord,
} from '../records/schema.ts'
import { checkWrittenValues, keepValues, shownValues } from '../records/values.ts'
import { type UserEditingParts, UserEditor } from './user-editor.ts'

const BUSINESSES: RecordKind<BusinessRecord, ConfiguredBusiness> = {
  what: 'business',
  kind: BUSINESS,
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
  check: (record, { namedValues: named, problemsOfValues }, problems, before) =>
    checkWrittenValues(record, { before, named, problemsOfValues }, problems),
  keep: async ({ values, ...record }, { sealer }, stands) =>
    values === undefined
      ? record
      : { ...record, values: await keepValues(values, { code: record.code, sealer, stands }) },
  // Its funds have records of their own, so it loses none of them by a change of its own.
  holdings: (record, code, { catalogue }) =>
    holdingsOf({ businesses: only(code, record && { funds: 'any', disabled: record.disabled }) }, catalogue),
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

const FUNDS: RecordKind<FundRecord, ConfiguredFund> = {
  what: 'fund',
  kind: FUND,
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
  holdings: (record, key, { catalogue }) => {
    const [business = '', code = ''] = key.split('/')
    const funds = new Set(record?.disabled === false ? [code] : [])
    return holdingsOf({ businesses: new Map([[business, { funds }]]) }, catalogue)
  },
}

const ROLES: RecordKind<RoleRecord, Access> = {
  what: 'role',
  kind: ROLE,
  read: readRole,
  configured: ({ configured }) => configured.roles,
  asRecord: ({ role, scopes }) => ({ name: role, scopes, disabled: false }),
  check: ({ scopes }, { catalogue }, problems) => checkScopes(scopes, catalogue, ['scopes'], problems),
  holdings: (record, name, { catalogue }) =>
    holdingsOf(
      { roles: only(name, record?.disabled === false && { role: name, scopes: record.scopes }) },
      catalogue,
    ),
}

/**
 * Businesses of the store, by code. `disable` ends the tokens for the business, `remove` its consents and funds too.
 */
export class BusinessEditor extends RecordEditor<BusinessRecord, ConfiguredBusiness> {
  constructor(parts: EditingParts) {
    super(BUSINESSES, parts)
  }

  override async planSwitch(code: string, disabled: boolean): Promise<PlannedChange> {
    if (this.parts.configured.businesses.has(code))
      throw new DirectoryRefusal(
        `Business "${code}" is in the configuration, which no command changes: edit it there, or close it by \`postern maintenance on --business ${code}\`.`,
      )
    return super.planSwitch(code, disabled)
  }
}

/** By `{business}/{fund}`. A disabled or removed fund is unknown (C4.8); the access tokens for it end. */
export class FundEditor extends RecordEditor<FundRecord, ConfiguredFund> {
  constructor(parts: EditingParts) {
    super(FUNDS, parts)
  }
}

/** Roles of the store, by name. A change that takes scopes away ends the access tokens issued by the role (C6.3.6). */
export class RoleEditor extends RecordEditor<RoleRecord, Access> {
  constructor(parts: EditingParts) {
    super(ROLES, parts)
  }
}

/**
 * The methods of every editor. Each change is planned first. If it is refused, that happens then, before anybody records
 * that it was begun. All methods reject with DirectoryRefusal, and with Fault `identity_unavailable`.
 */
export interface NounEditor {
  show(key: string): Promise<FoundRecord<object>>
  list(page: PageQuery): Promise<ListedPage<FoundRecord<object>>>
  planAdd(written: object): Promise<PlannedAdd>
  plan(key: string, changes: ChangesOf): Promise<PlannedChange>
  planSwitch(key: string, disabled: boolean): Promise<PlannedChange>
  planRemoval(key: string): Promise<PlannedStep<true>>
}

export interface Editors extends Readonly<Record<NounName, NounEditor>> {
  readonly client: ClientEditor
  readonly user: UserEditor
}

export const openEditors = (parts: UserEditingParts): Editors => ({
  client: new ClientEditor(parts),
  user: new UserEditor(parts),
  business: new BusinessEditor(parts),
  fund: new FundEditor(parts),
  role: new RoleEditor(parts),
})
