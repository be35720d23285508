/** Checks beyond the schema: each folder's own check, run on every section that could be read. */
import { compileAudit } from '../audit/config.ts'
import { compileBackends } from '../backends/open.ts'
import { closableNames, type Configuration, isSidecar, readConfiguration } from './configuration.ts'
import type { Environment } from '../config/references.ts'
import { Report } from '../config/report.ts'
import type { Signer } from '../contracts/keys.ts'
import {
  reportDangers,
  reportLonelyMemory,
  requireSharedAdminToken,
  refusePeopleOfSidecar,
  reportOpenedDemo,
  warnOfUnverifiedUpstreams,
  warnOfLentCredentials,
  warnOfReportOnly,
} from './dangers.ts'
import { compileDirectory, type Directory } from '../directory/compile.ts'
import { openPeople } from '../directory/module-people/open-people.ts'
import { reportTakenIds } from '../directory/uniqueness.ts'
import { compileActions } from '../gateway/compile-actions.ts'
import { checkOpenapi } from '../gateway/describe/config.ts'
import { compileIdentity } from '../identity/config.ts'
import { checkDevelopers } from '../identity/developers/config.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { compileKeys, compileSeals } from '../keys/config.ts'
import { compileIssuers, issuerNames } from '../keys/issuers-config.ts'
import { checkLoad } from '../limits/config.ts'
import { compileAdmin } from './admin.ts'
import { compileMaintenance } from '../maintenance/config.ts'
import { compileScopes } from '../config/scopes/config.ts'
import { compileServer } from '../server/config.ts'
import { compileStore } from '../stores/config.ts'
import { inspectStore } from '../stores/read-store.ts'
import { compileWorkers, countWorkers } from '../processes/worker-pool.ts'
import { checkListeners } from './listeners.ts'
import { readablePart, type ReadablePart } from './readable-part.ts'
import { warnOfUndocumented } from './undocumented.ts'
import { warnOfUnrecordedChanges } from './unrecorded-changes.ts'
import { unopened } from './unopened-backends.ts'
import { warnOfUntoldBusiness } from './untold-business.ts'
import { warnOfUnusedBackends, warnOfUnusedScopes } from './unused.ts'

interface Check {
  /** Sections that must have been read; of their entries, those that could be read are there. */
  readonly needs: readonly (keyof Configuration)[]
  /** Sections that must have been read with all their entries. */
  readonly whole?: readonly (keyof Configuration)[]
  readonly run: (
    configuration: Configuration,
    report: Report,
    environment: Environment,
    shared: Shared,
  ) => unknown
}

/** What several checks use. */
interface Shared {
  readonly unreadable: ReadonlySet<unknown>
  /** The compiled directory; the first call reports its problems. */
  readonly directory: () => Promise<Directory>
}

/** Stands for the service's keys, which a check does not open. */
const NO_SIGNER: Signer = { sign: () => Promise.reject(new Fault('internal')) }

/** The catalogue for checks of other sections. Its own problems are reported once, by its own row. */
const catalogueOf = ({ scopes }: Configuration) => compileScopes(scopes, new Report())

/** Checks of one section or two. They are cheap and open nothing. */
const SECTION_CHECKS: readonly Check[] = [
  { needs: ['server'], run: ({ server }, report) => compileServer(server, report) },
  { needs: ['server', 'admin'], run: checkListeners },
  { needs: ['admin'], run: ({ admin }, report) => compileAdmin(admin, report) },
  { needs: ['identity'], run: ({ identity }, report) => compileIdentity(identity, report) },
  {
    needs: ['audit'],
    whole: ['issuers'],
    run: (configuration, report) => compileAudit(configuration.audit, isSidecar(configuration), report),
  },
  { needs: ['keys'], run: ({ keys }, report) => compileKeys(keys, report) },
  {
    needs: ['issuers', 'scopes'],
    run: (all, report) => compileIssuers(all.issuers, report, catalogueOf(all)),
  },
  {
    needs: ['load', 'backends'],
    whole: ['issuers'],
    run: ({ load, backends, issuers }, report) =>
      checkLoad(load, report, { backends: new Set(Object.keys(backends)), issuers: issuerNames(issuers) }),
  },
  { needs: ['workers'], run: ({ workers }, report) => compileWorkers(workers, report) },
  {
    needs: ['store', 'workers'],
    run: ({ store, workers }, report) => compileStore(store, countWorkers(workers), report),
  },
  { needs: ['store'], run: ({ store }, report) => compileSeals(store, report) },
  {
    needs: ['maintenance', 'areas', 'backends', 'directory'],
    whole: ['issuers'],
    run: (all, report) => compileMaintenance(all.maintenance, closableNames(all), report),
  },
  {
    needs: ['openapi', 'areas'],
    run: ({ openapi, areas }, report) => checkOpenapi(openapi, Object.keys(areas), report),
  },
  { needs: ['backends', 'workers', 'store'], run: reportLonelyMemory },
  { needs: ['store', 'admin'], whole: ['issuers'], run: requireSharedAdminToken },
  { needs: ['areas', 'backends', 'actions'], run: warnOfReportOnly },
  { needs: ['areas', 'backends', 'actions'], run: warnOfLentCredentials },
  { needs: ['areas', 'backends', 'actions'], run: warnOfUntoldBusiness },
  { needs: ['audit', 'data'], whole: ['issuers', 'actions'], run: warnOfUnrecordedChanges },
  { needs: ['backends'], run: warnOfUnverifiedUpstreams },
  { needs: ['demo', 'server', 'directory'], whole: ['issuers'], run: reportDangers },
  { needs: ['directory'], whole: ['issuers'], run: refusePeopleOfSidecar },
  {
    needs: ['developers', 'demo'],
    whole: ['issuers'],
    run: ({ developers, demo, issuers }, report) =>
      checkDevelopers({ developers, demo, sidecar: isSidecar({ issuers }) }, report),
  },
]

/** The checks that `openParts` (start/service.ts) makes when it opens a configuration for serving. */
const PART_CHECKS: readonly Check[] = [
  { needs: ['scopes'], run: ({ scopes }, report) => compileScopes(scopes, report) },
  { needs: ['directory', 'scopes'], run: (_all, _report, _environment, { directory }) => directory() },
  {
    needs: ['directory', 'scopes', 'store', 'data'],
    whole: ['issuers'],
    run: async (all, report, _environment, { directory }) => {
      if (isSidecar(all)) return
      const compiled = await directory()
      await inspectStore(all.store, all.data, (store) => reportTakenIds(compiled, store, report))
    },
  },
  {
    needs: ['directory', 'scopes', 'server'],
    run: async (all, report, _environment, { directory }) => reportOpenedDemo(all, await directory(), report),
  },
  {
    needs: ['directory'],
    whole: ['issuers'],
    run: async ({ directory: { people } }, report) => {
      if (people === undefined) return
      const opened = await openPeople(people, { clock: systemClock, report, note: () => undefined })
      await opened?.close()
    },
  },
  {
    needs: ['backends', 'vendor'],
    whole: ['issuers'],
    run: async (all, report, _environment, { unreadable }) => {
      const opened = await openBackends(all, report)
      // Actions are compiled as for serving; a backend that could not be opened was reported, and is only a name here.
      const backends = new Map(
        Object.keys(all.backends).map((name) => [name, opened.get(name) ?? unopened(name)]),
      )
      if (areReadable(['actions', 'areas', 'scopes'], unreadable))
        compileActions(
          all.actions,
          {
            ...{ catalogue: catalogueOf(all), backends, areas: all.areas },
            severalIssuers: all.issuers.length > 1,
          },
          report,
        )
      await Promise.all([...opened.values()].map((backend) => backend.close()))
    },
  },
]

const openBackends = (all: Configuration, report: Report): ReturnType<typeof compileBackends> =>
  compileBackends(all.backends, report, {
    vendor: all.vendor,
    clock: systemClock,
    funds: undefined,
    signer: isSidecar(all) ? undefined : NO_SIGNER,
    targetChanged: () => undefined,
    retried: () => undefined,
    tokenChanged: () => undefined,
    moduleFailed: () => undefined,
    answerLimit: 0, // no call is made
  })

const areReadable = (keys: readonly (keyof Configuration)[], without: ReadonlySet<unknown>): boolean =>
  !keys.some((key) => without.has(key))

const canRun = ({ needs, whole = [] }: Check, { unreadable, partial }: ReadablePart): boolean =>
  areReadable([...needs, ...whole], unreadable) && areReadable(whole, partial)

function sharedBy({ configuration, unreadable }: ReadablePart, report: Report, env: Environment): Shared {
  let compiled: Promise<Directory> | undefined
  const compile = () => compileDirectory(configuration.directory, catalogueOf(configuration), report, env)
  return { unreadable, directory: () => (compiled ??= compile()) }
}

/** Corrects the paths of the problems that checks of a part have found, from the `first` on. */
function tellPathsInFile({ problems }: Report, first: number, { pathInFile }: ReadablePart): void {
  const found = problems.splice(first)
  // One by one: a list of arguments has a limit.
  for (const problem of found) problems.push({ ...problem, path: pathInFile(problem.path) })
}

export interface LoadedConfiguration {
  /** Absent if the report failed. */
  readonly configuration?: Configuration
  readonly report: Report
}

/** Reads a configuration for serving. Runs only the cheap checks; `openParts` makes the others. */
export function loadConfiguration(file: string, environment: Environment): LoadedConfiguration {
  const { configuration, report } = readConfiguration(file, environment)
  if (configuration === undefined) return { report }
  const part = readablePart(configuration, report)
  const shared = sharedBy(part, report, environment)
  const first = report.problems.length
  for (const check of SECTION_CHECKS)
    if (canRun(check, part)) check.run(part.configuration, report, environment, shared)
  tellPathsInFile(report, first, part)
  return report.failed ? { report } : { configuration, report }
}

/** What is told only of a configuration that can be served: otherwise it may follow from a problem. */
const LAST_CHECKS: readonly Check[] = [
  { needs: [], run: warnOfUnusedBackends },
  {
    needs: [],
    run: async (all, report, _environment, { directory }) =>
      warnOfUnusedScopes(all, await directory(), report),
  },
]

/** What is told only if it is asked for. */
const STRICT_CHECKS: readonly Check[] = [{ needs: ['actions'], run: warnOfUndocumented }]

/**
 * Reads a configuration and reports every problem. Serves nothing, writes nothing and opens no connection.
 * @param strict also warns of what is legal, and could be better for clients
 */
export async function checkConfiguration(
  file: string,
  environment: Environment,
  strict = false,
): Promise<Report> {
  const { configuration, report } = readConfiguration(file, environment)
  if (configuration === undefined) return report
  const part = readablePart(configuration, report)
  const shared = sharedBy(part, report, environment)
  const first = report.problems.length
  const run = async (checks: readonly Check[]): Promise<void> => {
    for (const check of checks)
      if (canRun(check, part)) await check.run(part.configuration, report, environment, shared)
  }
  await run([...SECTION_CHECKS, ...PART_CHECKS, ...(strict ? STRICT_CHECKS : [])])
  if (!report.failed) await run(LAST_CHECKS)
  tellPathsInFile(report, first, part)
  return report
}
