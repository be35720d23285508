/** Which calls of an operation the audit trail records, and what it keeps of their bodies (C12.1.1, C12.2.2). */
import type { KeyPath, Problems } from '../config/problems.ts'
import type { Backend } from '../contracts/backend.ts'
import { type JsonPointer, parseJsonPointer } from '../http/json.ts'
import type { AuditRule } from './action-table.ts'
import type { OperationConfig } from './schema.ts'

interface Nature {
  /** By the client's method and by the one that its upstream is sent. */
  readonly safe: boolean
  readonly websocket: boolean
  readonly backend: Backend
}

/** Undefined: its calls leave no record. Reports keys that do not go together. */
export function compileAuditRule(
  config: OperationConfig,
  nature: Nature,
  path: KeyPath,
  problems: Problems,
): AuditRule | undefined {
  checkKeys(config, path, problems)
  const calls = config.audit === 'none' ? undefined : whichCalls(config, nature)
  if (calls === undefined) return undefined
  return { calls, fields: (config.auditFields ?? []).map((name) => ({ name, pointer: pointerOf(name) })) }
}

function whichCalls(
  { audit }: OperationConfig,
  { safe, websocket, backend }: Nature,
): AuditRule['calls'] | undefined {
  if (!safe || audit === 'intent') return 'each'
  if (websocket) return 'upgrade'
  return backend.sendsAnything === true ? 'change' : undefined
}

const pointerOf = (name: string): JsonPointer => (name.startsWith('/') ? parseJsonPointer(name) : [name])

function checkKeys(
  { audit, auditReason, auditFields, body, consumes }: OperationConfig,
  path: KeyPath,
  problems: Problems,
): void {
  if (audit === 'none' && auditReason === undefined)
    problems.error([...path, 'auditReason'], 'is missing: `audit: none` needs the reason')
  if (audit !== 'none' && auditReason !== undefined)
    problems.error([...path, 'auditReason'], 'has no use without `audit: none`')
  if (auditFields === undefined) return
  const at = [...path, 'auditFields']
  if (audit === 'none') problems.error(at, 'has no use with `audit: none`')
  else if (consumes !== undefined)
    problems.error(at, 'is for bodies that are parsed, and `consumes` streams them')
  else if (body === undefined) problems.error(at, 'has no use without a `body`')
}
