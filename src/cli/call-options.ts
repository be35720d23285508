/** What the options of an order mean (tables/order.ts): which configuration, why, and by whose token. */
import { readFileSync } from 'node:fs'
import { MOST_REASON } from '../contracts/audit.ts'
import type { Terminal } from '../operator/terminal.ts'
import { UsageError } from '../operator/verb.ts'

/** The service that a command is for, and who gives the order. */
export interface CallOptions {
  /** `--config`. */
  readonly config?: string | undefined
  /** `--reason`. */
  readonly reason?: string | undefined
  /** `--admin-token`: `@` and the name of a file. */
  readonly 'admin-token'?: string | undefined
  /** `--admin-url`: of the admin listener. */
  readonly 'admin-url'?: string | undefined
  /** `--data`: the folder of a service that runs. */
  readonly data?: string | undefined
}

/**
 * The reason, as it was given.
 *
 * @throws UsageError if the audit trail has no room for it
 */
export function checkedReason({ reason }: CallOptions): string | undefined {
  const bytes = Buffer.byteLength(reason ?? '')
  if (bytes > MOST_REASON)
    throw new UsageError(`--reason: expected at most ${MOST_REASON} bytes, got ${bytes}`)
  return reason
}

/**
 * The operator's own token: of `--admin-token @FILE`, else of POSTERN_ADMIN_TOKEN. Undefined if neither is given.
 *
 * @throws UsageError if the file cannot be read, or the token itself is an argument
 */
export function ownToken({ 'admin-token': given }: CallOptions, { env }: Terminal): string | undefined {
  if (given === undefined) return env['POSTERN_ADMIN_TOKEN']?.trim() || undefined
  if (!given.startsWith('@'))
    throw new UsageError('--admin-token: expected @FILE, since process lists show arguments')
  try {
    return readFileSync(given.slice(1), 'utf8').trim()
  } catch (thrown) {
    throw new UsageError(`--admin-token: ${(thrown as Error).message}`)
  }
}

/**
 * So that nothing is begun with options that cannot be used.
 *
 * @throws UsageError as `checkedReason` and `ownToken` do
 */
export function checkOrder(options: CallOptions, terminal: Terminal): void {
  checkedReason(options)
  ownToken(options, terminal)
}

/**
 * The URL of `--admin-url`, else of POSTERN_ADMIN_URL. Undefined if neither is given.
 *
 * @throws UsageError if it is no http URL
 */
export function adminUrl({ 'admin-url': option }: CallOptions, { env }: Terminal): string | undefined {
  const given = option ?? (env['POSTERN_ADMIN_URL']?.trim() || undefined)
  if (given === undefined) return undefined
  const url = URL.parse(given)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`--admin-url: expected a URL such as http://127.0.0.1:9090, got "${given}"`)
  return given
}
