/** Checks beyond the schema: each folder's own check, run on every section that could be read. */
import type { AddedBackends } from '../../gateway/backends/kinds.ts'
import { compileBackends } from '../../gateway/backends/open.ts'
import { Problems } from '../../base/config/problems.ts'
import { compileScopes } from '../../base/config/scopes/schema.ts'
import type { Environment } from '../../base/config/validate.ts'
import type { Signer } from '../../base/contracts/people/keys.ts'
import { compileDirectory, type Directory } from '../../identity/directory/records/compile.ts'
import { reportTakenIds } from '../../identity/directory/records/uniqueness.ts'
import { checkOpenapi } from '../../gateway/actions/description-schema.ts'
import { compileIdentity } from '../../identity/dependencies/schema.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { Fault } from '../../base/kernel/faults.ts'
import {
  compileIssuers,
  isSidecar,
  issuerNames,
  requireAddressOfProofs,
} from '../../identity/keys/issuers/issuers-schema.ts'
import { compileKeys } from '../../identity/keys/signing/schema.ts'
import { checkLoad } from '../../gateway/limits/schema.ts'
import { compileMaintenance } from '../../gateway/maintenance/schema.ts'
import { compileWorkers, countWorkers } from '../../base/contracts/processes/worker-pool.ts'
import { compileServer } from '../../gateway/server/schema.ts'
import { isShared } from '../../base/contracts/records/store.ts'
import { inspectStore } from '../../state/stores/read-store.ts'
import { compileStore } from '../../state/stores/schema.ts'
import { compileAdmin } from './admin.ts'
import { reportMissingValues, reportWrongTargets, warnOfSameValues } from './business-values.ts'
import type { AddedChecks, ConfigurationCheck, Shared } from './added-checks.ts'
import { checkListeners, closableNames, type Configuration } from './configuration.ts'
import {
  reportDangers,
  reportOpenedDemo,
  reportUnsharedMemory,
  requireSharedAdminToken,
  warnOfUncheckedCredentials,
  warnOfReportOnly,
  warnOfUnverifiedUpstreams,
} from './dangers.ts'
import { compileActionsOf } from './parties.ts'
import type { Settings } from './settings.ts'
import { readablePart, type ReadablePart } from './readable-part.ts'
import {
  warnOfFewDescriptors,
  warnOfMissingSubjects,
  warnOfUndocumented,
  warnOfUnknownBusiness,
  warnOfUnrecordedChanges,
  warnOfUnusedBackends,
  warnOfUnusedScopes,
} from './warnings.ts'

/** Stands for the service's keys, which a check does not open. */
const NO_SIGNER: Signer = { sign: () => Promise.reject(new Fault('internal')) }

/** The catalogue for checks of other sections. Its own problems are reported once, by its own row. */
const catalogueOf = ({ scopes }: Configuration) => compileScopes(scopes, new Problems())

/** Checks of one section or two. They are cheap and open nothing. */
const SECTION_CHECKS: readonly ConfigurationCheck<string>[] = [
  { needs: ['server'], run: ({ server }, problems) => compileServer(server, problems) },
  { needs: ['server', 'admin'], run: checkListeners },
  { needs: ['admin'], run: ({ admin }, problems) => compileAdmin(admin, problems) },
  { needs: ['identity'], run: ({ identity }, problems) => compileIdentity(identity, problems) },
  { needs: ['keys'], run: ({ keys }, problems) => compileKeys(keys, problems) },
  {
    needs: ['issuers', 'scopes'],
    run: (all, problems) => compileIssuers(all.issuers, problems, catalogueOf(all)),
  },
  {
    needs: ['issuers', 'server'],
    run: ({ issuers, server }, problems) => requireAddressOfProofs(issuers, server.baseUrl, problems),
  },
  {
    needs: ['load', 'backends', 'store'],
    whole: ['issuers'],
    run: ({ load, backends, issuers, store }, problems) =>
      checkLoad(load, problems, {
        backends: new Set(Object.keys(backends)),
        issuers: issuerNames(issuers),
        keepsRates: isShared(store),
      }),
  },
  { needs: ['workers'], run: ({ workers }, problems) => compileWorkers(workers, problems) },
  {
    needs: ['store', 'workers'],
    run: ({ store, workers }, problems) => compileStore(store, countWorkers(workers), problems),
  },
  {
    needs: ['maintenance', 'areas', 'backends', 'directory'],
    whole: ['issuers'],
    run: (all, problems) => compileMaintenance(all.maintenance, closableNames(all), problems),
  },
  {
    needs: ['openapi', 'areas'],
    run: ({ openapi, areas }, problems) => checkOpenapi(openapi, Object.keys(areas), problems),
  },
  { needs: ['backends', 'workers', 'store'], run: reportUnsharedMemory },
  { needs: ['store', 'admin'], whole: ['issuers'], run: requireSharedAdminToken },
  { needs: ['areas', 'backends', 'actions'], run: warnOfReportOnly },
  { needs: ['areas', 'backends', 'actions'], run: warnOfUncheckedCredentials },
  { needs: ['areas', 'backends', 'actions'], run: warnOfUnknownBusiness },
  { needs: ['audit', 'data'], whole: ['issuers', 'actions'], run: warnOfUnrecordedChanges },
  { needs: ['backends'], run: warnOfUnverifiedUpstreams },
  {
    needs: ['backends', 'store'],
    run: (all, problems, { addedStores }) => warnOfFewDescriptors(all, problems, addedStores),
  },
  { needs: ['demo', 'server', 'directory'], whole: ['issuers'], run: reportDangers },
  {
    needs: ['server'],
    whole: ['issuers'],
    run: ({ issuers, server }, problems) => {
      if (isSidecar({ issuers }) && server.resourceMetadata)
        problems.error(['server', 'resourceMetadata'], 'a sidecar has no metadata that it could name')
    },
  },
]

/** A check that needs the compiled directory. */
const ofDirectory =
  (
    check: (configuration: Configuration, directory: Directory, problems: Problems) => unknown,
  ): ConfigurationCheck['run'] =>
  async (configuration, problems, { directory }) =>
    check(configuration, await directory(), problems)

/** The checks that `openParts` (serve/parts/parts.ts) makes when it opens a configuration for serving. */
const PART_CHECKS: readonly ConfigurationCheck[] = [
  { needs: ['scopes'], run: ({ scopes }, problems) => compileScopes(scopes, problems) },
  { needs: ['directory', 'scopes'], run: (_all, _problems, { directory }) => directory() },
  {
    needs: ['directory', 'scopes', 'areas', 'backends'],
    whole: ['actions'],
    run: ofDirectory(reportMissingValues),
  },
  {
    needs: ['directory', 'scopes', 'backends'],
    run: ofDirectory(reportWrongTargets),
  },
  {
    needs: ['directory', 'scopes', 'store', 'data'],
    whole: ['issuers'],
    run: async (all, problems, { directory, addedStores: kinds }) => {
      if (isSidecar(all)) return
      const compiled = await directory()
      const { store: config, data } = all
      await inspectStore({ config, data, kinds }, (store) => reportTakenIds(compiled, store, problems))
    },
  },
  {
    needs: ['directory', 'scopes', 'server'],
    run: ofDirectory(reportOpenedDemo),
  },
  {
    needs: ['backends', 'vendor'],
    whole: ['issuers'],
    run: async (all, problems, { unreadable, addedBackends }) => {
      const opened = await openBackends(all, problems, addedBackends)
      // Actions are compiled as for serving. A backend that could not be opened was reported.
      if (areReadable(['actions', 'areas', 'schemas', 'scopes'], unreadable))
        compileActionsOf(
          all,
          { catalogue: catalogueOf(all), upgrade: addedBackends.upgrade, opened },
          problems,
        )
      await Promise.all([...opened.values()].map((backend) => backend.close()))
    },
  },
]

const openBackends = (
  all: Configuration,
  problems: Problems,
  addedBackends: AddedBackends,
): ReturnType<typeof compileBackends> =>
  compileBackends(all.backends, problems, {
    vendor: all.vendor,
    clock: systemClock,
    funds: undefined,
    signer: isSidecar(all) ? undefined : NO_SIGNER,
    targetChanged: () => undefined,
    retried: () => undefined,
    tokenChanged: () => undefined,
    moduleFailed: () => undefined,
    answerLimit: 0, // no call is made
    addedBackends,
  })

const areReadable = (keys: readonly string[], without: ReadonlySet<unknown>): boolean =>
  !keys.some((key) => without.has(key))

const canRun = (
  { needs, whole = [] }: ConfigurationCheck<string>,
  { unreadable, partial }: ReadablePart,
): boolean => areReadable([...needs, ...whole], unreadable) && areReadable(whole, partial)

function sharedBy(
  { configuration, unreadable }: ReadablePart,
  problems: Problems,
  environment: Environment,
  { backends: addedBackends, clientForm, stores: addedStores, trail }: AddedChecks,
): Shared {
  let compiled: Promise<Directory> | undefined
  const reading = { environment, clientForm }
  const compile = () =>
    compileDirectory(configuration.directory, catalogueOf(configuration), problems, reading)
  return { unreadable, addedBackends, addedStores, trail, directory: () => (compiled ??= compile()) }
}

function correctPaths({ list: problems }: Problems, first: number, { pathInFile }: ReadablePart): void {
  const found = problems.splice(first)
  // One by one: a list of arguments has a limit.
  for (const problem of found) problems.push({ ...problem, path: pathInFile(problem.path) })
}

interface LoadedConfiguration {
  /** Absent if `problems` has failed. */
  readonly configuration?: Configuration
  readonly problems: Problems
}

/** Reads a file for serving. Runs only the cheap checks; `openParts` makes the others. */
export function loadConfiguration(
  { read, added }: Settings,
  file: string,
  environment: Environment,
): LoadedConfiguration {
  const { configuration, problems } = read(file, environment)
  if (configuration === undefined) return { problems }
  const part = readablePart(configuration, problems)
  const shared = sharedBy(part, problems, environment, added)
  const first = problems.list.length
  for (const check of [...SECTION_CHECKS, ...added.checks])
    if (canRun(check, part)) check.run(part.configuration, problems, shared)
  correctPaths(problems, first, part)
  return problems.failed ? { problems } : { configuration, problems }
}

/** Warnings that are given only for a configuration that can be served: otherwise they may follow from a problem. */
const LAST_CHECKS: readonly ConfigurationCheck[] = [
  { needs: [], run: warnOfUnusedBackends },
  {
    needs: [],
    run: ofDirectory(warnOfUnusedScopes),
  },
  {
    needs: [],
    run: ofDirectory(warnOfSameValues),
  },
  {
    needs: [],
    run: ofDirectory(warnOfMissingSubjects),
  },
]

const STRICT_CHECKS: readonly ConfigurationCheck[] = [
  {
    needs: ['actions'],
    run: (all, problems, { addedBackends }) => warnOfUndocumented(all, addedBackends.upgrade, problems),
  },
]

/**
 * Reads a file and reports every problem. Writes nothing and opens no connection.
 *
 * @param strict also warns of what is legal, and could be better for clients
 */
export async function checkConfiguration(
  { read, added }: Settings,
  file: string,
  environment: Environment,
  strict = false,
): Promise<Problems> {
  const { configuration, problems } = read(file, environment)
  if (configuration === undefined) return problems
  const part = readablePart(configuration, problems)
  const shared = sharedBy(part, problems, environment, added)
  const first = problems.list.length
  const run = async (checks: readonly ConfigurationCheck<string>[]): Promise<void> => {
    for (const check of checks) if (canRun(check, part)) await check.run(part.configuration, problems, shared)
  }
  await run([
    ...SECTION_CHECKS,
    ...added.checks,
    ...PART_CHECKS,
    ...added.partChecks,
    ...(strict ? STRICT_CHECKS : []),
  ])
  if (!problems.failed) await run(LAST_CHECKS)
  correctPaths(problems, first, part)
  return problems
}
