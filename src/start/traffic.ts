/** How much one process is doing at the moment, as gauges (C11.1). Nothing is counted for them: they are read when asked. */
import type { Backend, UpstreamTraffic } from '../contracts/backend.ts'
import { type GaugeReading, reading, readingOf } from '../watch/metrics/gauges.ts'
import { FAMILIES } from '../watch/metrics/families.ts'
import type { WorkerDependencies } from './dependencies.ts'
import type { Generation } from './generation.ts'

type Serving = Pick<Generation, 'parts' | 'calls'>
type Parts = Pick<WorkerDependencies, 'admission' | 'hasher'>

/** All gauges of a process that serves. The parameters are as those of `readTraffic`. */
export const readProcess = (
  serving: readonly (Serving & Pick<Generation, 'metrics'>)[],
  current: Serving & Pick<Generation, 'certificates'>,
  dependencies: Parts & Pick<WorkerDependencies, 'gauges'>,
): readonly GaugeReading[] => [
  ...dependencies.gauges.read(),
  ...serving.flatMap(({ metrics }) => [...metrics.gauges()]),
  ...current.certificates,
  ...readTraffic(serving, current, dependencies),
]

/**
 * @param serving all configurations on which calls may be in flight. Their backends have connections and waiting calls;
 *   one that a reload has kept is of several of them, and is read once.
 * @param current the one in force, whose targets get calls
 */
export function* readTraffic(
  serving: readonly Serving[],
  current: Serving,
  { admission, hasher }: Parts,
): Iterable<GaugeReading> {
  yield reading(FAMILIES.callsInFlight, sum(serving.map(({ calls }) => calls)))
  const people = new Set(serving.map(({ parts }) => parts.people?.module))
  const waiting = [...people].map((module) => module?.waiting ?? 0)
  yield reading(FAMILIES.hashQueue, hasher.waiting + sum(waiting))
  yield readingOf(FAMILIES.shedding, admission.isShedding)
  const backends = new Set(serving.flatMap(({ parts }) => [...parts.backends.values()]))
  for (const name of new Set([...backends].map((backend) => backend.name)))
    yield reading(FAMILIES.backendCallsInFlight, admission.previewBackend(name).inFlight.now, name)
  for (const backend of backends) yield* readUpstream(backend, current)
}

function* readUpstream(backend: Backend, { parts }: Serving): Iterable<GaugeReading> {
  const { name } = backend
  const traffic = backend.traffic?.()
  if (traffic === undefined) return
  yield reading(FAMILIES.upstreamQueue, traffic.waiting, name)
  for (const state of CONNECTIONS) yield reading(FAMILIES.upstreamConnections, traffic[state], name, state)
  if (parts.backends.get(name) !== backend) return
  for (const state of TARGETS) yield reading(FAMILIES.upstreamTargets, traffic[state], name, state)
}

const CONNECTIONS = ['active', 'idle'] as const satisfies readonly (keyof UpstreamTraffic)[]
const TARGETS = ['healthy', 'ejected'] as const satisfies readonly (keyof UpstreamTraffic)[]

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
