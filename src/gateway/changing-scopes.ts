import type { Catalogue } from '../config/scopes/catalogue.ts'
import type { ActionConfig, OperationConfig } from './schema.ts'

const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

/** Whether its calls may change something (RFC 9110 §9.2.1), by what the configuration says of it. */
const mayChange = (method: string, { audit, upstream, websocket }: OperationConfig): boolean =>
  audit !== 'none' && (!SAFE.has(upstream?.method ?? method) || websocket === true)

/**
 * The scope values whose tokens may change data, for the consent page (C6.2.2): those that operations which change
 * something require, and those that imply them. Of values that are required together, those that reading takes too do
 * not count, unless all of them are such: then they open a change together.
 */
export function changingScopes(actions: readonly ActionConfig[], catalogue: Catalogue): ReadonlySet<string> {
  const operations = actions.flatMap(({ methods }) =>
    Object.entries(methods).map(([method, operation]) => ({
      operation,
      changes: mayChange(method, operation),
    })),
  )
  const reading = new Set(
    operations.flatMap(({ operation: { scopes }, changes }) =>
      changes ? [] : [...(scopes.any ?? []), ...(scopes.all ?? [])],
    ),
  )
  const changing = operations
    .filter(({ changes }) => changes)
    .flatMap(({ operation: { scopes } }) => {
      const { any = [], all = [] } = scopes
      const own = all.filter((value) => !reading.has(value))
      return [...any, ...(own.length > 0 ? own : all)]
    })
  return new Set(changing.flatMap((value) => [...catalogue.satisfiers(value)]))
}
