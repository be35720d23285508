/** The backends that a reload reuses, with their connections: those whose configuration and files have not changed. */
import { isDeepStrictEqual } from 'node:util'
import { contentsOfBackend, type OpenedBackend } from '../backends/open.ts'
import { type BackendConfig, backendUnder } from '../backends/schema.ts'
import type { Configuration } from '../settings/configuration.ts'

export const isModule = ({ kind }: BackendConfig): boolean => kind === 'module'

/** By backend: a digest of its files. @param which the backends that are looked at */
export async function contentsOf(
  { backends }: Configuration,
  when: 'now' | 'loaded',
  which: (config: BackendConfig) => boolean = () => true,
): Promise<Map<string, string>> {
  const chosen = Object.entries(backends).filter(([, config]) => which(config))
  const digests = chosen.map(async ([name, config]) => [name, await contentsOfBackend(config, when)] as const)
  return new Map(await Promise.all(digests))
}

/** What was served before a reload. */
interface PartsBefore {
  readonly configuration: Configuration
  readonly backends: ReadonlyMap<string, OpenedBackend>
  /** What `contentsOf` told of them. */
  readonly contents: ReadonlyMap<string, string>
}

/** A module that runs around another backend is reused only with that one. */
export function reusedBackends(
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
