import type { OpenedBackend } from '../../gateway/backends/kinds.ts'
import type { Problems } from '../../base/config/problems.ts'
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import { compileScopes } from '../../base/config/scopes/schema.ts'
import { readCode } from '../../base/config/scopes/scope-token.ts'
import type { Client, User } from '../../base/contracts/people/people.ts'
import { toClient } from '../../identity/directory/records/client-rules.ts'
import { compileUser } from '../../identity/directory/records/compile-records.ts'
import {
  compileDirectory,
  type Directory,
  type RecordReading,
} from '../../identity/directory/records/compile.ts'
import { type Mark, MarkedNames } from '../../identity/directory/records/marks.ts'
import {
  BUSINESS,
  type BusinessRecord,
  FUND,
  type FundRecord,
  readBusiness,
  readFund,
  readRole,
  ROLE,
  type RoleRecord,
  type UserRecord,
} from '../../identity/directory/records/schema.ts'
import {
  CLIENT,
  readStoredClient,
  readStoredUser,
  type StoredClient,
  type StoredUser,
  USER,
} from '../../identity/directory/records/stored-directory.ts'
import type { StoredValue } from '../../base/contracts/records/store.ts'
import { compileScopeRule, isReportOnly, type ScopeRule } from '../../gateway/actions/action-table.ts'
import { compileActions, type CompiledActions } from '../../gateway/actions/compile-actions.ts'
import type { CompileContext } from '../../gateway/actions/compile-method.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import type { Configuration } from './configuration.ts'

/** The part of the directory that is in the store. */
export interface StoredRecords {
  readonly clients: readonly StoredClient[]
  readonly users: readonly StoredUser[]
  readonly businesses: readonly BusinessRecord[]
  readonly funds: readonly FundRecord[]
  readonly roles: readonly RoleRecord[]
  /** What disables clients and users of either layer. */
  readonly marks: readonly Mark[]
}

export const NOTHING_STORED: StoredRecords = {
  clients: [],
  users: [],
  businesses: [],
  funds: [],
  roles: [],
  marks: [],
}

/** The kinds of these records, apart from those of marks. */
export const STORED_KINDS = [CLIENT, USER, BUSINESS, FUND, ROLE] as const

/** Reads the records. `valuesOf`: those of a kind, as the store has them. */
export const readStored = (
  valuesOf: (kind: (typeof STORED_KINDS)[number]) => readonly StoredValue[],
  marks: readonly Mark[],
): StoredRecords => ({
  clients: valuesOf(CLIENT).map((value) => readStoredClient(value)),
  users: valuesOf(USER).map(readStoredUser),
  businesses: valuesOf(BUSINESS).map(readBusiness),
  funds: valuesOf(FUND).map(readFund),
  roles: valuesOf(ROLE).map(readRole),
  marks,
})

export interface PartiesParts extends RecordReading {
  readonly stored: StoredRecords
  readonly clock: Clock
}

export interface ListedOperation {
  /** Index of its action among those of the configuration. */
  readonly slot: number
  readonly level: 'business' | 'fund' | 'user'
  readonly area: string
  /** The path below the area, with its parameters. */
  readonly action: string
  readonly method: string
  readonly versions: readonly number[]
  /** The gateway's own rule (C4.7), with area scopes and implication. */
  readonly rule: ScopeRule
  /** Whether its area refuses nothing. */
  readonly reportOnly: boolean
}

export interface Parties {
  readonly catalogue: Catalogue
  /** The directory, with the businesses and roles of the store. */
  readonly directory: Directory
  /** If two clients have the same id, the configuration's counts (identity/directory/records/people.ts). */
  readonly clients: ReadonlyMap<string, Client>
  /** By user name; if two have the same, the configuration's counts. Compiled one by one: the directory may be large. */
  readonly findUser: (username: string) => User | undefined
  readonly users: () => Iterable<User>
  readonly usernames: () => Iterable<string>
  readonly operations: readonly ListedOperation[]
  readonly clock: Clock
}

const operationsOf = ({ actions, areas }: Configuration, catalogue: Catalogue): ListedOperation[] =>
  actions.flatMap(({ level, area, action, methods }, slot) =>
    Object.entries(methods).map(([method, { scopes, versions }]) => ({
      slot,
      level,
      area,
      action,
      method,
      versions: [...new Set(versions)].sort((a, b) => a - b),
      rule: compileScopeRule(scopes, areas[area], catalogue),
      reportOnly: isReportOnly(areas[area]),
    })),
  )

/** All by name, the configured ones first. If two have one name, the configured one counts. */
const layered = <T>(
  configured: ReadonlyMap<string, T>,
  stored: readonly (readonly [string, T])[],
): ReadonlyMap<string, T> => new Map([...configured, ...stored.filter(([name]) => !configured.has(name))])

/** The directory with the businesses, funds and roles of the store. Those that are disabled there are left out. */
function withStored(configured: Directory, { businesses, funds, roles }: StoredRecords): Directory {
  const fundsOf = Map.groupBy(
    funds.filter(({ disabled }) => !disabled),
    ({ business }) => business,
  )
  const open = businesses.filter(({ disabled }) => !disabled)
  return {
    ...configured,
    businesses: layered(
      configured.businesses,
      open.flatMap(({ code, name, funds }) => {
        const read = readCode(code)
        const listed = (fundsOf.get(code) ?? []).flatMap((fund) => readCode(fund.code) ?? [])
        const known = funds === 'any' ? funds : new Set(listed)
        return read === undefined ? [] : [[code, { code: read, name, funds: known }] as const]
      }),
    ),
    roles: layered(
      configured.roles,
      roles.flatMap(({ name, scopes, disabled }) =>
        disabled ? [] : [[name, { role: name, scopes }] as const],
      ),
    ),
  }
}

/** If `problems` has failed, the result must not be used. */
export async function readParties(
  configuration: Configuration,
  { stored, clock, ...reading }: PartiesParts,
  problems: Problems,
): Promise<Parties> {
  const catalogue = compileScopes(configuration.scopes, problems)
  const configured = await compileDirectory(configuration.directory, catalogue, problems, reading)
  const directory = withStored(configured, stored)
  const marked = new MarkedNames(stored.marks)
  const all = layered(
    directory.clients,
    stored.clients.map(({ record }) => [record.id, toClient(record, reading.clientForm)]),
  )
  const clients = new Map([...all].map(([id, client]) => [id, marked.client(client)]))
  const records = layered(
    directory.users,
    stored.users.map(({ record }) => [record.username, record]),
  )
  const compile = (record: UserRecord): User => compileUser(marked.user(record), directory.roles)
  return {
    catalogue,
    directory,
    clients,
    clock,
    findUser: (username) => {
      const record = records.get(username)
      return record && compile(record)
    },
    users: () => records.values().map(compile),
    usernames: () => records.keys(),
    operations: operationsOf(configuration, catalogue),
  }
}

/** Stands for a backend that is not open, where no call is made: only its name matters, and no operation of it is a problem. */
const unopened = (name: string): OpenedBackend => ({
  name,
  format: 'value',
  payload: 'bare',
  answer: () => Promise.reject(new Fault('internal', { detail: `backend ${name} is not open` })),
  upgrade: {
    isAsked: () => false,
    take: () => Promise.reject(new Fault('internal', { detail: `backend ${name} is not open` })),
  },
  close: () => Promise.resolve(),
  forOperation: () => unopened(name),
})

interface CompilingActions extends Pick<CompileContext, 'catalogue' | 'upgrade'> {
  /** Backends that are open, by name. Default: none; then operations only name their backend. */
  readonly opened?: ReadonlyMap<string, OpenedBackend>
}

/** The actions of a configuration as the gateway compiles them. */
export const compileActionsOf = (
  { actions, areas, backends, issuers, schemas }: Configuration,
  { catalogue, upgrade, opened }: CompilingActions,
  problems: Problems,
): CompiledActions =>
  compileActions(
    actions,
    {
      catalogue,
      areas,
      schemas,
      severalIssuers: issuers.length > 1,
      upgrade,
      backends: new Map(Object.keys(backends).map((name) => [name, opened?.get(name) ?? unopened(name)])),
    },
    problems,
  )
