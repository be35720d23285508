import type { OpenSharedRates, RateUsage } from '../../src/base/contracts/calls/admission.ts'
import { compileLoad, type LoadConfig } from '../../src/gateway/limits/schema.ts'
import { LoadGuard } from '../../src/gateway/limits/load-guard.ts'
import { movableClock, type MovableClock } from './movable-clock.ts'

/** `load` as it is without a word in the configuration. */
export const LOAD_DEFAULTS: LoadConfig = {
  clients: { inFlight: 1000, byId: {} },
  backends: { inFlight: 1000, byName: {} },
  addresses: {},
  share: 0.1,
  shedding: { delay: 250 },
}

export interface TestGuard {
  readonly guard: LoadGuard
  readonly clock: MovableClock
  readonly told: RateUsage[]
  readonly notes: string[]
}

/** A guard whose time stands still, and that nobody ticks but the test. */
export function makeGuard(
  load: Partial<LoadConfig> = {},
  {
    workers = 1,
    backends = 1,
    clock = movableClock(),
    openRates,
  }: { workers?: number; backends?: number; clock?: MovableClock; openRates?: OpenSharedRates } = {},
): TestGuard {
  const told: RateUsage[] = []
  const notes: string[] = []
  const guard = new LoadGuard(compileLoad({ ...LOAD_DEFAULTS, ...load }, workers, backends), {
    clock,
    workers,
    openRates,
    sendUsage: (spending) => told.push(spending),
    note: (_level, event) => notes.push(event),
  })
  return { guard, clock, told, notes }
}
