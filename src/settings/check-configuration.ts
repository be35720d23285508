/** Checks beyond the schema: each folder's own check, run on every section that could be read. */
import { compileBackends } from '../backends/config.ts'
import { closableNames, type Configuration, isSidecar, readConfiguration } from './configuration.ts'
import type { Environment } from '../config/references.ts'
import { Report } from '../config/report.ts'
import type { Backend } from '../contracts/backend.ts'
import type { Signer } from '../contracts/keys.ts'
import {
  reportDangers,
  reportLonelyMemory,
  reportOpenedDemo,
  warnOfUnverifiedUpstreams,
  warnOfReportOnly,
} from './dangers.ts'
import { compileDirectory } from '../directory/compile.ts'
import { reportTakenIds } from '../directory/uniqueness.ts'
import { compileActions } from '../gateway/compile-actions.ts'
import { compileIdentity } from '../identity/config.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/faults.ts'
import { compileIssuers, compileKeys } from '../keys/config.ts'
import { checkLoad } from '../limits/config.ts'
import { compileAdmin } from '../operations/config.ts'
import { compileMaintenance } from '../operations/maintenance/config.ts'
import { compileScopes } from '../scopes/config.ts'
import { compileServer } from '../server/config.ts'
import { compileStore } from '../stores/config.ts'
import { inspectStore } from '../stores/read-store.ts'
import { compileWorkers, countWorkers } from '../supervisor/worker-pool.ts'

interface Check {
  /** Sections that must have been read without a problem. */
  readonly needs: readonly (keyof Configuration)[]
  readonly run: (configuration: Configuration, report: Report, environment: Environment) => unknown
}

/** Stands for a backend where only its name matters. */
const unopened = (name: string): Backend => ({
  name,
  format: 'value',
  payload: 'bare',
  answer: () => Promise.reject(new Fault('internal', { detail: `backend ${name} is not open` })),
  close: () => Promise.resolve(),
})

/** Stands for the service's keys, which a check does not open. */
const NO_SIGNER: Signer = { sign: () => Promise.reject(new Fault('internal')) }

/** The catalogue for checks of other sections. Its own problems are reported once, by its own row. */
const catalogueOf = ({ scopes }: Configuration) => compileScopes(scopes, new Report())

/** Checks of one section or two. They are cheap and open nothing. */
const SECTION_CHECKS: readonly Check[] = [
  { needs: ['server'], run: ({ server }, report) => compileServer(server, report) },
  { needs: ['admin'], run: ({ admin }, report) => compileAdmin(admin, report) },
  { needs: ['identity'], run: ({ identity }, report) => compileIdentity(identity, report) },
  { needs: ['keys'], run: ({ keys }, report) => compileKeys(keys, report) },
  { needs: ['issuers'], run: ({ issuers }, report) => compileIssuers(issuers, report) },
  {
    needs: ['load', 'backends'],
    run: ({ load, backends }, report) => checkLoad(load, report, Object.keys(backends)),
  },
  { needs: ['workers'], run: ({ workers }, report) => compileWorkers(workers, report) },
  {
    needs: ['store', 'workers'],
    run: ({ store, workers }, report) => compileStore(store, countWorkers(workers), report),
  },
  {
    needs: ['maintenance', 'areas', 'backends', 'directory'],
    run: (all, report) => compileMaintenance(all.maintenance, closableNames(all), report),
  },
  { needs: ['backends', 'workers'], run: reportLonelyMemory },
  { needs: ['areas', 'backends'], run: warnOfReportOnly },
  { needs: ['backends'], run: warnOfUnverifiedUpstreams },
  { needs: ['demo', 'server', 'directory', 'issuers'], run: reportDangers },
]

/** The checks that `openParts` (start/service.ts) makes when it opens a configuration for serving. */
const PART_CHECKS: readonly Check[] = [
  { needs: ['scopes'], run: ({ scopes }, report) => compileScopes(scopes, report) },
  {
    needs: ['directory', 'scopes'],
    run: (all, report, environment) => compileDirectory(all.directory, catalogueOf(all), report, environment),
  },
  {
    needs: ['directory', 'scopes', 'store', 'data', 'issuers'],
    run: async (all, report, environment) => {
      if (isSidecar(all)) return
      const directory = await compileDirectory(all.directory, catalogueOf(all), new Report(), environment)
      await inspectStore(all.store, all.data, (store) => reportTakenIds(directory, store, report))
    },
  },
  {
    needs: ['directory', 'scopes', 'server'],
    run: async (all, report, environment) => {
      const directory = await compileDirectory(all.directory, catalogueOf(all), new Report(), environment)
      await reportOpenedDemo(all, directory, report)
    },
  },
  {
    needs: ['backends', 'vendor', 'issuers'],
    run: async (all, report) => {
      const opened = await compileBackends(all.backends, report, {
        vendor: all.vendor,
        clock: systemClock,
        funds: undefined,
        signer: isSidecar(all) ? undefined : NO_SIGNER,
        targetChanged: () => undefined,
        moduleFailed: () => undefined,
        answerLimit: 0, // no call is made
      })
      await Promise.all([...opened.values()].map((backend) => backend.close()))
    },
  },
  {
    needs: ['actions', 'areas', 'backends', 'scopes'],
    run: (all, report) => {
      const backends = new Map(Object.keys(all.backends).map((name) => [name, unopened(name)]))
      compileActions(all.actions, { catalogue: catalogueOf(all), backends, areas: all.areas }, report)
    },
  },
]

/** The checks whose sections were read without a problem. The others would report consequences of those problems. */
function runnable(checks: readonly Check[], { problems }: Report): readonly Check[] {
  const troubled = new Set(problems.map((problem) => problem.path[0]))
  return checks.filter(({ needs }) => !needs.some((key) => troubled.has(key)))
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
  for (const { run } of runnable(SECTION_CHECKS, report)) run(configuration, report, environment)
  return report.failed ? { report } : { configuration, report }
}

/** Reads a configuration and reports every problem. Serves nothing, writes nothing and opens no connection. */
export async function checkConfiguration(file: string, environment: Environment): Promise<Report> {
  const { configuration, report } = readConfiguration(file, environment)
  if (configuration === undefined) return report
  for (const { run } of runnable([...SECTION_CHECKS, ...PART_CHECKS], report)) {
    await run(configuration, report, environment)
  }
  return report
}
