/** Opens what a configuration names: the parts that need no address yet. */
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { AddedBackends, BackendDependencies, OpenedBackend } from '../../gateway/backends/kinds.ts'
import { compileBackends, contentsOfBackend } from '../../gateway/backends/open.ts'
import { type BackendConfig, backendUnder } from '../../gateway/backends/schema.ts'
import { ConfigurationError, Problems } from '../../base/config/problems.ts'
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import { compileScopes } from '../../base/config/scopes/schema.ts'
import type { Admission } from '../../base/contracts/calls/admission.ts'
import type { AuditTrail } from '../../base/contracts/records/audit.ts'
import type { Backend } from '../../base/contracts/calls/backend.ts'
import type { AttemptLimiter } from '../../base/contracts/people/lockouts.ts'
import type { Feed, Store } from '../../base/contracts/records/store.ts'
import type { Switches } from '../../base/contracts/calls/switches.ts'
import {
  compileDirectory,
  type Directory,
  type RecordReading,
} from '../../identity/directory/records/compile.ts'
import type { Hasher } from '../../identity/directory/hashing/hasher.ts'
import type { PeopleOpening } from '../../identity/directory/records/people-source.ts'
import type { OpenedFunds } from '../../identity/directory/records/places.ts'
import type { DisabledMarks } from '../../identity/directory/records/marks.ts'
import type { StoredDirectory } from '../../identity/directory/records/stored-directory.ts'
import type { StoredPlaces } from '../../identity/directory/records/stored-places.ts'
import { reportTakenIds } from '../../identity/directory/records/uniqueness.ts'
import { compileActions, type CompiledActions } from '../../gateway/actions/compile-actions.ts'
import type { Conversions } from '../../gateway/conversion/conversions.ts'
import type { LogoutNotices } from '../../identity/dependencies/logouts.ts'
import type { StoreTokenRevoker } from '../../identity/stored/token-revoker.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import type { IssuerKeys } from '../../identity/keys/issuers/issuer-keys.ts'
import type { ServiceKeys } from '../../identity/keys/signing/service-keys.ts'
import { reportMissingValues, reportWrongTargets } from '../../operate/settings/business-values.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { reportOpenedDemo } from '../../operate/settings/dangers.ts'
import type { EndpointsOfApi, Extension } from '../../operate/hooks/extension.ts'
import type { EditingParts } from '../../identity/directory/editors/editing.ts'
import type { SecurityProfile } from '../../operate/hooks/security-profile.ts'
import type { RevocationRules } from '../../state/stores/feed/revocations.ts'
import type { ClientTallies } from '../../operate/watch/metrics/counts.ts'
import { type OpenedPeople, openPeopleOf } from './people.ts'

/** The parts that outlive a configuration: state, keys, switches, limits. */
export interface Dependencies extends RecordReading {
  readonly extensions: readonly Extension[]
  /** The parts that extensions add to backends. */
  readonly addedBackends: AddedBackends
  readonly clock: Clock
  /** Absent in a sidecar, which issues nothing (C11.2). */
  readonly keys: ServiceKeys | undefined
  /** It remembers proofs and keys of clients, whatever configuration was in force. */
  readonly security: SecurityProfile
  /** The keys of foreign issuers, which only a sidecar has. */
  readonly issuerKeys: IssuerKeys
  readonly store: Store
  readonly feed: Pick<Feed, 'append'>
  readonly hasher: Hasher
  /** Waits until other processes know of a change of the directory. */
  readonly pause?: EditingParts['pause']
  readonly attempts: AttemptLimiter
  readonly switches: Switches
  readonly admission: Admission
  readonly audit: AuditTrail
  readonly openedFunds: OpenedFunds
  readonly conversions: Conversions
  readonly targetChanged: BackendDependencies['targetChanged']
  readonly retried: BackendDependencies['retried']
  readonly tokenChanged: BackendDependencies['tokenChanged']
  readonly moduleFailed: BackendDependencies['moduleFailed']
  /** Told of what the operator's code that finds people did outside of calls. */
  readonly peopleFailed: PeopleOpening['note']
  readonly storedDirectory: StoredDirectory
  readonly marks: DisabledMarks
  readonly storedPlaces: StoredPlaces
  readonly rules: RevocationRules
  readonly tokenRevoker: StoreTokenRevoker
  readonly logouts: LogoutNotices
  /** Counts calls by client. */
  readonly tallies: ClientTallies
}

/** The parts of a configuration that need no address yet. */
export interface Parts {
  readonly configuration: Configuration
  readonly catalogue: Catalogue
  readonly directory: Directory
  readonly backends: ReadonlyMap<string, OpenedBackend>
  /** By backend: a digest of its files as they were when it was opened. */
  readonly contents: ReadonlyMap<string, string>
  readonly actions: CompiledActions
  /** People that live elsewhere. */
  readonly people: OpenedPeople | undefined
  /** Endpoints of extensions. */
  readonly endpoints: readonly EndpointsOfApi[]
}

/** The parts to be closed when no configuration needs them any more. */
export const closablesOf = ({
  backends,
  people,
}: Pick<Parts, 'backends' | 'people'>): readonly ClosableResource[] => [
  ...backends.values(),
  ...(people === undefined ? [] : [people.source]),
]

export type ClosableResource = Pick<Backend, 'close'>

/**
 * Opens what a configuration names. A backend whose configuration and files have not changed is reused, with its
 * connections and its written sample data. Rejects with ConfigurationError; nothing new is left open then.
 */
export async function openParts(
  configuration: Configuration,
  dependencies: Dependencies,
  before?: Parts,
): Promise<Parts> {
  const problems = new Problems()
  const { vendor, areas } = configuration
  const catalogue = compileScopes(configuration.scopes, problems)
  const directory = await compileDirectory(configuration.directory, catalogue, problems, dependencies)
  await reportOpenedDemo(configuration, directory, problems)
  if (!problems.failed && !isSidecar(configuration))
    await reportTakenIds(directory, dependencies.store, problems)
  const { addedBackends, extensions } = dependencies
  const endpoints = await Promise.all(
    extensions.flatMap((extension) => extension.endpoints?.(configuration) ?? []),
  )
  const now = await contentsOf(configuration, 'now', addedBackends)
  const reused = reusedBackends(configuration, now, before)
  const wanted = Object.entries(configuration.backends).filter(([name]) => !reused.has(name))
  const backendParts = {
    vendor,
    clock: dependencies.clock,
    funds: dependencies.openedFunds,
    signer: dependencies.keys?.forCalls,
    targetChanged: dependencies.targetChanged,
    retried: dependencies.retried,
    tokenChanged: dependencies.tokenChanged,
    moduleFailed: dependencies.moduleFailed,
    answerLimit: configuration.server.limits.answer,
    addedBackends,
  }
  const opened = await compileBackends(Object.fromEntries(wanted), problems, backendParts, reused)
  const people = await openPeopleOf(configuration.directory, dependencies, problems, before?.people)
  const backends = new Map([...reused, ...opened])
  const actions = compileActions(
    configuration.actions,
    {
      catalogue,
      backends,
      areas,
      schemas: configuration.schemas,
      severalIssuers: configuration.issuers.length > 1,
      upgrade: addedBackends.upgrade,
    },
    problems,
  )
  reportMissingValues(configuration, directory, problems)
  reportWrongTargets(configuration, directory, problems)
  if (!problems.failed) {
    const contents = new Map([
      ...now,
      ...(await contentsOf(configuration, 'loaded', addedBackends, ({ kind }) =>
        addedBackends.kinds.has(kind),
      )),
    ])
    return { configuration, catalogue, directory, backends, contents, actions, people, endpoints }
  }
  const fresh = people === before?.people ? undefined : people
  await closeAll(closablesOf({ backends: opened, people: fresh }))
  throw new ConfigurationError(problems)
}

/** By backend: a digest of its files. @param which the backends that are looked at */
async function contentsOf(
  { backends }: Configuration,
  when: 'now' | 'loaded',
  addedBackends: AddedBackends,
  which: (config: BackendConfig) => boolean = () => true,
): Promise<Map<string, string>> {
  const chosen = Object.entries(backends).filter(([, config]) => which(config))
  const digests = chosen.map(
    async ([name, config]) => [name, await contentsOfBackend(config, when, addedBackends)] as const,
  )
  return new Map(await Promise.all(digests))
}

/** The parts that were served before a reload. */
interface PartsBefore {
  readonly configuration: Configuration
  readonly backends: ReadonlyMap<string, OpenedBackend>
  /** The results of `contentsOf` for them. */
  readonly contents: ReadonlyMap<string, string>
}

/** A backend that runs around another one is reused only with that one. */
function reusedBackends(
  { backends, vendor, server }: Configuration,
  now: ReadonlyMap<string, string>,
  before: PartsBefore | undefined,
): Map<string, OpenedBackend> {
  if (before === undefined || before.configuration.vendor !== vendor) return new Map()
  if (before.configuration.server.limits.answer !== server.limits.answer) return new Map()
  const old = before.configuration.backends
  const same = Object.keys(backends).filter(
    (name) => isDeepStrictEqual(backends[name], old[name]) && now.get(name) === before.contents.get(name),
  )
  const isReused = (name: string): boolean => {
    const config = backends[name]
    const under = config && backendUnder(config)
    return under === undefined || same.includes(under)
  }
  return new Map(
    same.filter(isReused).flatMap((name) => {
      const backend = before.backends.get(name)
      return backend === undefined ? [] : [[name, backend]]
    }),
  )
}

const LONGEST_CLOSE_MS = 5000

/** Closes all, and waits 5 s at most: a user's module that hangs must not keep the process from ending. */
export const closeAll = async (closables: Iterable<ClosableResource>): Promise<void> => {
  const closed = Promise.all([...closables].map((closable) => closable.close()))
  const bound = new AbortController()
  await Promise.race([
    closed,
    wait(LONGEST_CLOSE_MS, undefined, { signal: bound.signal }).catch(() => undefined),
  ])
  bound.abort()
}
