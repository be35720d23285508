/** What maintenance switches can close in a configuration, and what is open there (C11.5.6). */
import { BUSINESS, readBusiness } from '../directory/schema.ts'
import { everyRecord } from '../directory/stored-directory.ts'
import type { StoredIdentities } from '../directory/uniqueness.ts'
import type { Closable } from '../maintenance/preview.ts'
import { closableNames, type Configuration } from '../settings/configuration.ts'
import { FAMILIES } from '../watch/metrics/families.ts'
import { type GaugeReading, mergeReadings } from '../watch/metrics/gauges.ts'

/** Rejects with Fault `identity_unavailable` if the store cannot be read. */
export async function closableOf(configuration: Configuration, store: StoredIdentities): Promise<Closable> {
  const { actions, areas } = configuration
  const { business, stored } = closableNames(configuration)
  const inStore = business !== undefined && stored ? await openBusinesses(store) : []
  return {
    actions: actions.map(({ area, action, level, methods }) => ({
      ...{ area, action, level, methods: Object.keys(methods) },
      backend: areas[area]?.backend ?? '',
    })),
    businesses: business && [...new Set([...business, ...inStore])].sort(),
  }
}

/** Those of the store. One that is disabled is closed already. */
async function openBusinesses(store: StoredIdentities): Promise<readonly string[]> {
  const codes: string[] = []
  for await (const { value } of everyRecord(store, BUSINESS)) {
    const { code, disabled } = readBusiness(value)
    if (!disabled) codes.push(code)
  }
  return codes
}

/** Open websockets by backend. */
export function openWebsockets(readings: readonly GaugeReading[]): Readonly<Record<string, number>> {
  const { tunnelsOpen } = FAMILIES
  const open = mergeReadings(
    tunnelsOpen,
    readings.filter(({ name }) => name === tunnelsOpen.name),
  )
  return Object.fromEntries(open.map(({ labels, value }) => [labels[0] ?? '', value]))
}
