/** How commands call the admin API of a running service. */
import { userInfo } from 'node:os'
import { type AdminAccess, sendTo } from '../operator/remote.ts'
import { OperationError } from '../operator/errors.ts'
import { printJson, type Terminal } from '../operator/terminal.ts'
import { EXIT } from '../operator/verb.ts'
import type { Configuration } from '../settings/configuration.ts'
import { adminUrl, type CallOptions, ownToken } from './call-options.ts'

/** A request of the admin API. */
export interface AdminCall {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Readonly<Record<string, unknown>>
}

/**
 * Sends a request. Rejects with OperationError if nobody answers, or the service refuses.
 *
 * @param own the operator's own token
 * @param address the URL of the admin listener. Default: as configured-admin.ts finds it
 */
export async function requestAdmin(
  configuration: Configuration,
  call: AdminCall,
  own?: string,
  address?: string,
): Promise<Response> {
  const { adminAccess } = await import('./configured-admin.ts')
  return sendTo(await adminAccess(configuration, { token: own, address }), call, call)
}

/** The name of the operator for the log. */
export function operatorName({ env }: Terminal): string {
  if (env['SUDO_USER']) return env['SUDO_USER']
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}

/** Of a command that prints an answer of the admin API. */
interface AnswerOptions extends CallOptions {
  /** `--json`: the answer as it is, not what `show` makes of it. */
  readonly json?: boolean | undefined
}

/** The exit codes of a command that calls the admin API. */
interface ExitCodes {
  readonly of: (answer: never) => number
  /** If the service refuses or does not answer. */
  readonly trouble: number
}

const USUAL: ExitCodes = { of: () => EXIT.done, trouble: EXIT.failed }

/** Asks the admin API. Rejects with OperationError if nobody answers, or the service refuses. */
export type AdminCaller = (call: AdminCall) => Promise<unknown>

/**
 * Does what asks the admin API of the service that serves `--config` (its default is in default-file.ts). The promise gives
 * the exit code: that of the work; or `trouble`, after the reason was written, if the service refuses or does not answer.
 */
export async function usingAdminApi(
  options: CallOptions,
  terminal: Terminal,
  work: (ask: AdminCaller) => Promise<number>,
  trouble: number = EXIT.failed,
): Promise<number> {
  try {
    const access = await findAdminApi(options, terminal)
    if (access === undefined) return EXIT.refused
    return await work(async (call) => (await sendTo(access, call, call)).json())
  } catch (error) {
    if (!(error instanceof OperationError)) throw error
    terminal.stderr.write(`postern: ${error.message}\n`)
    return trouble
  }
}

/** Calls the admin API, and prints what `show` makes of the answer. The promise gives the exit code, as above. */
export function callAdminApi(
  call: AdminCall,
  options: AnswerOptions,
  terminal: Terminal,
  show: (answer: never) => string,
  exit: ExitCodes = USUAL,
): Promise<number> {
  const work = async (ask: AdminCaller): Promise<number> => {
    const answer = (await ask(call)) as never
    if (options.json === true) printJson(answer, terminal)
    else terminal.stdout.write(show(answer))
    return exit.of(answer)
  }
  return usingAdminApi(options, terminal, work, exit.trouble)
}

/**
 * The admin API that a command calls. Undefined, after the problems were written, if the configuration does not say where
 * it is. With `--admin-url` and an own token the configuration is not read: it may be one that nothing can be read of.
 */
export async function findAdminApi(
  options: CallOptions,
  terminal: Terminal,
): Promise<AdminAccess | undefined> {
  const own = ownToken(options, terminal)
  const given = adminUrl(options, terminal)
  if (given !== undefined && own !== undefined) return { address: given, token: own }
  // Only here: a configuration with all its sections is most of what such a command loads.
  const { readAdminAccess } = await import('./configured-admin.ts')
  return readAdminAccess(options.config, { token: own, address: given }, terminal)
}
