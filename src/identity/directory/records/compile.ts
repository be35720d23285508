import type { Problems } from '../../../base/config/problems.ts'
import type { Static, TSchema } from '../../../base/config/schema.ts'
import type { Catalogue } from '../../../base/config/scopes/catalogue.ts'
import type { Environment } from '../../../base/config/validate.ts'
import type { Access, Client, People } from '../../../base/contracts/people/people.ts'
import type { ConfiguredBusiness } from '../../../base/contracts/people/places.ts'
import { compileClient } from './client-rules.ts'
import { checkUser, compileBusiness } from './compile-records.ts'
import { SnapshotPeople } from './people.ts'
import { SnapshotPlaces } from './places.ts'
import { problemsAt, readRecords, type RecordProblems } from './read-records.ts'
import { checkScopes, type ReferableNames } from './references.ts'
import {
  businessRecordSchema,
  type ClientForm,
  type DirectoryConfig,
  type UserRecord,
  userRecordSchema,
} from './schema.ts'

export interface Directory {
  readonly places: SnapshotPlaces
  readonly people: People
  readonly businesses: ReadonlyMap<string, ConfiguredBusiness>
  readonly clients: ReadonlyMap<string, Client>
  readonly clientForm: ClientForm
  readonly users: ReadonlyMap<string, UserRecord>
  readonly usersBySubject: ReadonlyMap<string, UserRecord>
  readonly roles: ReadonlyMap<string, Access>
}

/** How a configuration's records are read. */
export interface RecordReading {
  /** Resolves `{ env: … }`. */
  readonly environment: Environment
  readonly clientForm: ClientForm
}

interface Source<T extends TSchema> {
  readonly section: 'businesses' | 'clients' | 'users'
  /** The member that holds the key if the record is in a file. */
  readonly key: 'code' | 'id' | 'username'
  readonly schema: T
}

const BUSINESSES = { section: 'businesses', key: 'code', schema: businessRecordSchema } as const
const USERS = { section: 'users', key: 'username', schema: userRecordSchema } as const

class DirectoryReader {
  readonly #config: DirectoryConfig
  readonly #problems: Problems
  readonly #environment: Environment

  constructor(config: DirectoryConfig, problems: Problems, environment: Environment) {
    this.#config = config
    this.#problems = problems
    this.#environment = environment
  }

  async gather<T extends TSchema, R>(
    { section, key, schema }: Source<T>,
    compile: (record: Static<T>, problems: RecordProblems) => R | undefined,
  ): Promise<Map<string, R>> {
    const found = new Map<string, R>()
    const take = (record: Static<T>, problems: RecordProblems): void => {
      const name = (record as Record<string, unknown>)[key] as string
      const isTwice = found.has(name)
      if (isTwice) problems.error([key], `occurs twice: "${name}"`)
      const compiled = isTwice ? undefined : compile(record, problems)
      if (compiled !== undefined) found.set(name, compiled)
    }
    for (const [name, record] of Object.entries(this.#config[section]))
      take({ [key]: name, ...record } as Static<T>, problemsAt(this.#problems, ['directory', section, name]))
    const file = this.#config.files[section]
    const at = {
      path: ['directory', 'files', section],
      environment: this.#environment,
      problems: this.#problems,
    }
    if (file !== undefined) await readRecords({ file, schema, key, ...at }, take)
    return found
  }

  roles(catalogue: Catalogue): Map<string, Access> {
    const roles = Object.entries(this.#config.roles).map(([role, { scopes }]) => {
      checkScopes(scopes, catalogue, ['scopes'], problemsAt(this.#problems, ['directory', 'roles', role]))
      return [role, { role, scopes }] as const
    })
    return new Map(roles)
  }
}

/** Problems go to `problems`: use the result only if it has not failed. */
export async function compileDirectory(
  config: DirectoryConfig,
  catalogue: Catalogue,
  problems: Problems,
  { environment, clientForm }: RecordReading,
): Promise<Directory> {
  const reader = new DirectoryReader(config, problems, environment)
  const businesses = await reader.gather(BUSINESSES, compileBusiness)
  const roles = reader.roles(catalogue)
  const some = { catalogue, businesses, roles, clients: new Map<string, Client>(), clientForm }
  const ofClients = { section: 'clients', key: 'id', schema: clientForm.schema } as const
  const clients = await reader.gather(ofClients, (record, at) => compileClient(record, some, at))
  const known: ReferableNames = { ...some, clients }
  const bySubject = new Map<string, UserRecord>()
  const users = await reader.gather(USERS, (record, problems) => {
    checkUser(record, known, problems)
    const other = bySubject.get(record.subject)
    if (other !== undefined) problems.error(['subject'], `also belongs to "${other.username}"`)
    bySubject.set(record.subject, record)
    return record
  })
  return {
    places: new SnapshotPlaces(businesses),
    people: new SnapshotPeople(clients, { byName: users, bySubject }, roles),
    businesses,
    clients,
    clientForm,
    users,
    usersBySubject: bySubject,
    roles,
  }
}
