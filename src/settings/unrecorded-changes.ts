/** Warns where data may change without a record in the audit trail (C12.1.1). */
import { planAudit } from '../audit/schema.ts'
import type { KeyPath, Problems } from '../config/problems.ts'
import type { ActionConfig, OperationConfig } from '../gateway/schema.ts'
import { isSafe } from '../http/head.ts'
import { type Configuration, isSidecar } from './configuration.ts'

/** One warning for each operation that leaves no record, and one if no trail is kept beside operations that need it. */
export function warnOfUnrecordedChanges(configuration: Configuration, problems: Problems): void {
  const operations = configuration.actions.flatMap(operationsOf)
  for (const { path, operation } of operations)
    if (operation.audit === 'none') problems.warn([...path, 'audit'], warningOf(operation))
  const needs = operations.filter(needsRecord)
  const { audit, data } = configuration
  if (needs.length > 0 && planAudit(audit, data, isSidecar(configuration)) === undefined)
    problems.warn(
      ['audit'],
      `is off: ${needs.length} operation${needs.length > 1 ? 's' : ''} would leave a record of each call`,
      isSidecar(configuration) ? 'give it a `folder`' : 'leave out `enabled: false`',
    )
}

const warningOf = ({ auditReason }: OperationConfig): string =>
  `is none: calls leave no record${auditReason === undefined ? '' : `, since ${JSON.stringify(auditReason)}`}`

interface Placed {
  readonly path: KeyPath
  readonly method: string
  readonly operation: OperationConfig
}

const operationsOf = ({ methods }: ActionConfig, index: number): readonly Placed[] =>
  Object.entries(methods).map(([method, operation]) => ({
    path: ['actions', index, 'methods', method],
    method,
    operation,
  }))

function needsRecord({ method, operation: { audit, upstream, websocket } }: Placed): boolean {
  if (audit !== undefined) return audit === 'intent'
  return !isSafe(method) || !isSafe(upstream?.method ?? method) || websocket === true
}
