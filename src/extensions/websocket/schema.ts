/** The keys of websockets: of an operation, and of a backend of kind `stream`. */
import type { Problems } from '../../base/config/problems.ts'
import { flag, optional } from '../../base/config/schema.ts'
import type { UpgradedOperation } from '../../gateway/backends/kinds.ts'

export const OPERATION_KEYS = {
  websocket: optional(
    flag({
      description:
        'Allow a websocket. Only for GET, and if the backend is of kind `stream`. Default: `false`.',
    }),
  ),
}

export const BACKEND_KEYS = {
  closeOnExpiry: flag({
    default: true,
    description: 'Close a websocket (code 1008) when the token that opened it expires or is revoked.',
  }),
}

/** The value of an operation's `websocket`. */
export const isAllowed = (operation: object): boolean =>
  (operation as { readonly websocket?: boolean }).websocket === true

/** The value of a backend's `closeOnExpiry`. */
export const endsWithToken = (backend: object): boolean =>
  (backend as { readonly closeOnExpiry?: boolean }).closeOnExpiry !== false

export function checkOperation(
  { method, upstreamMethod, backend, path }: UpgradedOperation,
  problems: Problems,
): void {
  if (upstreamMethod !== undefined && upstreamMethod !== 'GET')
    problems.error(
      [...path, 'upstream', 'method'],
      'is for a websocket, which begins with a GET (RFC 6455 §4.1)',
    )
  if (method !== 'GET') problems.error([...path, 'websocket'], 'is for GET only (RFC 6455 §4.1)')
  if (backend.upgrade === undefined) problems.error([...path, 'websocket'], 'needs a backend of kind stream')
}
