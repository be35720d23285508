/**
 * What maintenance switches can close in the configuration in force and in the store, and what is open there (C11.5.6).
 * Imported only where a switch is checked: commands need none of it.
 */
import { BUSINESS, readBusiness } from '../../identity/directory/records/schema.ts'
import { CLIENT, everyRecord } from '../../identity/directory/records/stored-directory.ts'
import type { StoredIdentities } from '../../identity/directory/records/uniqueness.ts'
import { type Closable, type MaintenancePreview, previewSwitch } from '../../gateway/maintenance/preview.ts'
import { type SwitchProblem, switchProblems } from '../../gateway/maintenance/schema.ts'
import type { MaintenanceSwitch } from '../../gateway/maintenance/switch.ts'
import { closableNames, type Configuration } from '../settings/configuration.ts'
import { FAMILIES } from '../watch/metrics/families.ts'
import { valuesByLabel } from '../watch/metrics/gauges.ts'
import type { ServiceContext } from '../operation/context.ts'
import type { GaugeReading } from '../../base/contracts/processes/reports.ts'

/**
 * The problems of a switch. Businesses and clients that are unknown to the configuration may be in the store (C9.2).
 * Rejects with Fault `identity_unavailable` if that cannot be read.
 */
export async function problemsOf(
  entry: MaintenanceSwitch,
  { configuration, store }: ServiceContext,
): Promise<SwitchProblem[]> {
  const left: SwitchProblem[] = []
  for (const problem of switchProblems(entry, closableNames(configuration())))
    if (!(await isStored(problem, store))) left.push(problem)
  return left
}

async function isStored(
  { client, business }: SwitchProblem,
  store: ServiceContext['store'],
): Promise<boolean> {
  if (client !== undefined) return (await store.find(CLIENT, client)) !== undefined
  return business !== undefined && (await store.find(BUSINESS, business)) !== undefined
}

/** What a switch would close, and whom it would have met in the last hour. Rejects as `problemsOf` does. */
export async function previewOf(
  entry: MaintenanceSwitch,
  { configuration, store, pool, readings, callHistory }: ServiceContext,
): Promise<MaintenancePreview> {
  pool.flush()
  const closable = await closableOf(configuration(), store)
  const websockets = openWebsockets(readings())
  const { since } = callHistory
  return previewSwitch(entry, closable, { since, counts: callHistory.counts(), websockets })
}

async function closableOf(configuration: Configuration, store: StoredIdentities): Promise<Closable> {
  const { actions, areas } = configuration
  const { business, stored } = closableNames(configuration)
  const inStore = business !== undefined && stored ? await openBusinesses(store) : []
  return {
    actions: actions.map(({ area, action, level, methods }) => ({
      area,
      action,
      level,
      methods: Object.keys(methods),
      backend: areas[area]?.backend ?? '',
    })),
    businesses: business && [...new Set([...business, ...inStore])].sort(),
  }
}

/** The businesses of the store. One that is disabled is closed already. */
async function openBusinesses(store: StoredIdentities): Promise<readonly string[]> {
  const codes: string[] = []
  for await (const { value } of everyRecord(store, BUSINESS)) {
    const { code, disabled } = readBusiness(value)
    if (!disabled) codes.push(code)
  }
  return codes
}

/** Open websockets by backend. */
function openWebsockets(readings: readonly GaugeReading[]): Readonly<Record<string, number>> {
  const { tunnelsOpen } = FAMILIES
  return valuesByLabel(
    tunnelsOpen,
    readings.filter(({ name }) => name === tunnelsOpen.name),
  )
}
