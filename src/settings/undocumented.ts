import type { Problems } from '../config/problems.ts'
import type { ActionConfig } from '../gateway/schema.ts'
import type { Configuration } from './configuration.ts'

type OperationConfig = NonNullable<ActionConfig['methods'][keyof ActionConfig['methods']]>

/** What those who write clients want to be told of an operation. */
const WANTED = ['summary', 'description', 'data', 'examples'] as const

/** Warns of each operation that leaves out what clients could be told of it (C11.3.7). */
export function warnOfUndocumented({ actions }: Pick<Configuration, 'actions'>, problems: Problems): void {
  for (const [index, { methods }] of actions.entries())
    for (const [method, operation] of Object.entries(methods)) {
      const missing = wantedOf(operation).filter((key) => operation[key] === undefined)
      if (missing.length > 0)
        problems.warn(
          ['actions', index, 'methods', method],
          `does not tell clients its ${missing.join(', ')}`,
        )
    }
}

/** Answers without an envelope have no `Data` to be described. */
const wantedOf = ({ produces, websocket }: OperationConfig): readonly (typeof WANTED)[number][] =>
  produces !== undefined || websocket === true ? ['summary', 'description'] : WANTED
