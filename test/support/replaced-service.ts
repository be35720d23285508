/** One service for the tests of a file that each want another configuration. */
import { fixedChanges } from '../../src/operate/settings/configuration.ts'
import { shared } from './shared.ts'
import { configurationOf, postern, type StartedPostern, type StartOptions } from './start-postern.ts'

/** What a reload may change. */
export type Replacement = Pick<StartOptions, 'config' | 'environment' | 'change'>

/**
 * Called in a file or at the top of a `describe`. What it returns puts a configuration in force, in the one service of
 * these tests, as a reload does: that costs a fifth of a start, and `change` may be any function. What was asked for last
 * is served. A test that needs two at once, or a service without a past, has one of its own by `postern`.
 */
export function replacedService(
  fixed: Pick<StartOptions, 'clock' | 'keeps'> = {},
): (options?: Replacement) => Promise<StartedPostern> {
  let first: Replacement | undefined
  const started = shared(() => postern({ ...fixed, ...first }))
  return async (options = {}) => {
    const isFirst = first === undefined
    first ??= options
    const service = await started()
    if (isFirst) return service
    const { configuration } = configurationOf({ ...fixed, ...options }, service.data)
    const changed = fixedChanges(service.configuration, configuration)
    if (changed.length > 0) throw new TypeError(`only a start changes ${changed.join(', ')}`)
    await service.worker?.prepare(configuration)
    await service.worker?.commit()
    return { ...service, configuration }
  }
}
