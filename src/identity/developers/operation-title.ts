import type { OperationDescription } from '../../contracts/api-description.ts'

/** What an operation is called: its summary, or method and action. */
export const operationTitle = ({
  action,
  method,
  summary,
}: Pick<OperationDescription, 'action' | 'method' | 'summary'>): string => summary ?? `${method} ${action}`
