/** The options of the commands that change something: which configuration, why, and by whose token. */
import { readFileSync } from 'node:fs'
import { MOST_REASON } from '../contracts/audit.ts'
import { type Terminal, UsageError } from './command.ts'
import { DEFAULT_FILE } from './default-file.ts'

const text = { type: 'string' } as const

/** For `parseArgs`. */
export const ORDER = { config: text, reason: text, 'admin-token': text } as const

/** The same, for commands that only a running service carries out. */
export const SERVICE_ORDER = { ...ORDER, 'admin-url': text } as const

/** The service that a command is for, and who gives the order. */
export interface OrderOptions {
  /** `--config`. */
  readonly config?: string | undefined
  /** `--reason`. */
  readonly reason?: string | undefined
  /** `--admin-token`: `@` and the name of a file. */
  readonly 'admin-token'?: string | undefined
  /** `--admin-url`: of the admin listener. */
  readonly 'admin-url'?: string | undefined
}

/** For the help texts of commands. */
export const ORDER_HELP = `  --reason TEXT         For the log and the audit trail; at most ${MOST_REASON} bytes
  --admin-token @FILE   Your own token, instead of the one in the data folder. Also POSTERN_ADMIN_TOKEN
  --config FILE         The configuration that is served`

/** The same, for commands that only a running service carries out. */
export const SERVICE_ORDER_HELP = `${ORDER_HELP}
  --admin-url URL       The admin listener. Default: where the running service says. Also POSTERN_ADMIN_URL`

/** For the help texts of `client` and `user`. */
export const DIRECTORY_ORDER_NOTES = `All subcommands take --config FILE (default: ${DEFAULT_FILE}). Those that change something take
--reason TEXT (at most ${MOST_REASON} bytes) and --admin-token @FILE (also POSTERN_ADMIN_TOKEN): your own token, whose name
the audit trail records. A running service follows within a second.`

/**
 * The reason, as it was given.
 *
 * @throws UsageError if the audit trail has no room for it
 */
export function checkedReason({ reason }: OrderOptions): string | undefined {
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
export function ownToken({ 'admin-token': given }: OrderOptions, { env }: Terminal): string | undefined {
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
export function checkOrder(options: OrderOptions, terminal: Terminal): void {
  checkedReason(options)
  ownToken(options, terminal)
}

/**
 * The URL of `--admin-url`, else of POSTERN_ADMIN_URL. Undefined if neither is given.
 *
 * @throws UsageError if it is no http URL
 */
export function adminUrl({ 'admin-url': option }: OrderOptions, { env }: Terminal): string | undefined {
  const given = option ?? (env['POSTERN_ADMIN_URL']?.trim() || undefined)
  if (given === undefined) return undefined
  const url = URL.parse(given)
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`--admin-url: expected a URL such as http://127.0.0.1:9090, got "${given}"`)
  return given
}
