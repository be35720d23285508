/** What maintenance switches can close in a configuration, and what is open there (C11.5.6). */
import type { Closable } from '../operations/maintenance/preview.ts'
import { type GaugeReading, mergeReadings } from '../operations/metrics/gauges.ts'
import { FAMILIES } from '../operations/metrics/metric-families.ts'
import { closableNames, type Configuration } from '../settings/configuration.ts'

export function closableOf(configuration: Configuration): Closable {
  const { actions, areas } = configuration
  const { business } = closableNames(configuration)
  return {
    actions: actions.map(({ area, action, level, methods }) => ({
      ...{ area, action, level, methods: Object.keys(methods) },
      backend: areas[area]?.backend ?? '',
    })),
    businesses: business && [...business].sort(),
  }
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
