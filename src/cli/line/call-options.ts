/** The options that many commands have, and what they mean: which configuration, why, by whose token. */
import { Buffer } from 'node:buffer'
import { hostname, userInfo } from 'node:os'
import { MOST_REASON } from '../../base/contracts/records/audit.ts'
import { faultOfToken, readValue } from '../../base/files/text-file.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { type Options, UsageError } from '../../operate/operation/verb.ts'
import { DEFAULT_FILE } from './command.ts'

export const JSON_ANSWER = {
  json: { type: 'boolean', help: 'Print the answer as JSON, for programs' },
} as const satisfies Options

export const CONFIG = {
  config: { type: 'string', kind: 'file', help: `The configuration. Default: ${DEFAULT_FILE}` },
} as const satisfies Options

/** Options of commands that change something, or leave a record. */
export const ORDER = {
  reason: { type: 'string', help: `Why, for the log and the audit trail; at most ${MOST_REASON} bytes` },
  'admin-token': {
    type: 'string',
    kind: 'at-file',
    help: 'Your own token, in place of the one in the data folder. Also POSTERN_ADMIN_TOKEN',
  },
  ...CONFIG,
} as const satisfies Options

/** Options of commands that only a running service carries out. */
export const SERVICE_ORDER = {
  ...ORDER,
  'admin-url': {
    type: 'string',
    kind: 'url',
    help: 'The admin listener. Default: where the running service says. Also POSTERN_ADMIN_URL',
  },
  data: {
    type: 'string',
    kind: 'folder',
    help: 'The data folder of the running service, in place of a configuration that cannot be read',
  },
} as const satisfies Options

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

function tokenIn(file: string): string {
  try {
    return readValue(file)
  } catch (thrown) {
    throw new UsageError(`--admin-token: ${file} cannot be read (${reasonInWords(thrown)})`)
  }
}

/**
 * The operator's own token: of `--admin-token @FILE`, otherwise of POSTERN_ADMIN_TOKEN. Undefined if neither is given.
 *
 * @throws UsageError if the file cannot be read or holds no token, or the token itself is an argument
 */
export function ownToken({ 'admin-token': given }: CallOptions, { env }: Terminal): string | undefined {
  if (given === undefined) return env['POSTERN_ADMIN_TOKEN']?.trim() || undefined
  if (!given.startsWith('@'))
    throw new UsageError('--admin-token: expected @FILE, since process lists show arguments')
  const file = given.slice(1)
  const token = tokenIn(file)
  const fault = faultOfToken(token)
  if (fault !== undefined)
    throw new UsageError(`--admin-token: ${file} holds no token that can be sent: it ${fault}`)
  return token
}

/**
 * The URL of `--admin-url`, otherwise of POSTERN_ADMIN_URL. Undefined if neither is given.
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

/** The name of the user whose rights this process has; undefined where there is none. */
function ownUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}

/** The name of the operator for the log. */
export const operatorName = ({ env }: Terminal): string => env['SUDO_USER'] || (ownUser() ?? 'unknown')

/** Who gives an order by what files allow: the user whose rights this process has, by number where it has no name, and the host. */
export const systemOperatorName = (): string =>
  `${ownUser() ?? String(process.geteuid?.() ?? 'unknown')}@${hostname()}`
