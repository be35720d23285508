/** How commands call the admin API of a running service. */
import { userInfo } from 'node:os'
import { configurationFile, EXIT, writeReport, type Terminal } from './command.ts'
import type { Report } from '../config/report.ts'
import { isSidecar, readConfiguration, type Configuration } from '../settings/configuration.ts'
import { planAudit } from '../audit/config.ts'
import { runningService } from '../audit/lock.ts'
import { localUrl } from '../kernel/listen-address.ts'
import { readAdminToken } from '../operations/admin/token-file.ts'
import { adminUrl, type OrderOptions, ownToken } from './order-options.ts'
import { printJson } from './terminal.ts'

/** A request of the admin API. */
export interface AdminCall {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Readonly<Record<string, unknown>>
}

/** The message goes to stderr, and the exit code is 1. */
export class AdminTrouble extends Error {}

interface Refusal {
  readonly error?: string
  readonly problems?: readonly string[]
}

const SECTIONS = ['admin', 'audit', 'data', 'issuers']

/** Only what says where the service is must be free of problems: maintenance must work while the file is being edited. */
const isUsable = (configuration: Configuration | undefined, report: Report): configuration is Configuration =>
  configuration !== undefined &&
  !report.problems.some(({ path, severity }) => severity === 'error' && SECTIONS.includes(String(path[0])))

async function tokenOf({ admin, data }: Configuration, own: string | undefined): Promise<string> {
  if (own !== undefined) return own
  if (admin.token !== undefined) return admin.token
  try {
    return await readAdminToken(data)
  } catch (error) {
    throw new AdminTrouble(`the admin token cannot be read: ${(error as Error).message}`)
  }
}

/**
 * Where the admin API of the service with this configuration is: where a running one says, since it may have been started
 * with another port; else as the configuration says.
 */
function addressOf(configuration: Configuration): string {
  const { admin, audit, data } = configuration
  const folder = planAudit(audit, data, isSidecar(configuration))?.folder
  return (folder && runningService(folder)) ?? localUrl(admin.listen)
}

/**
 * Sends a request. Rejects with AdminTrouble if nobody answers, or the service refuses.
 *
 * @param own the operator's own token
 * @param address the URL of the admin listener. Default: see `addressOf`
 */
export async function requestAdmin(
  configuration: Configuration,
  call: AdminCall,
  own?: string,
  address = addressOf(configuration),
): Promise<Response> {
  return requestAt({ address, token: await tokenOf(configuration, own) }, call)
}

/** An admin API, and the token for it. */
interface AdminAccess {
  readonly address: string
  readonly token: string
}

async function requestAt({ address, token }: AdminAccess, call: AdminCall): Promise<Response> {
  const { method, path, query = {}, body } = call
  const url = new URL(path, address)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, value)
  const headers = {
    Authorization: `Bearer ${token}`,
    ...(body && { 'Content-Type': 'application/json' }),
  }
  const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) }).catch(
    () => {
      throw new AdminTrouble(
        `there is no answer from ${address}: is the service running, and is this its configuration?`,
      )
    },
  )
  if (response.ok) return response
  const answer: unknown = await response.json().catch(() => ({}))
  const { error = `status ${response.status}`, problems = [] } = answer as Refusal
  throw new AdminTrouble([error, ...problems.map((problem) => `  ${problem}`)].join('\n'))
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
interface AnswerOptions extends OrderOptions {
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

/** Asks the admin API. Rejects with AdminTrouble if nobody answers, or the service refuses. */
export type AdminCaller = (call: AdminCall) => Promise<unknown>

/**
 * Does what asks the admin API of the service that serves `--config` (its default is in default-file.ts). The promise gives
 * the exit code: that of the work; or `trouble`, after the reason was written, if the service refuses or does not answer.
 */
export async function usingAdminApi(
  options: OrderOptions,
  terminal: Terminal,
  work: (ask: AdminCaller) => Promise<number>,
  trouble: number = EXIT.failed,
): Promise<number> {
  try {
    const access = await findAdminApi(options, terminal)
    if (access === undefined) return EXIT.refused
    return await work(async (call) => (await requestAt(access, call)).json())
  } catch (error) {
    if (!(error instanceof AdminTrouble)) throw error
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
async function findAdminApi(options: OrderOptions, terminal: Terminal): Promise<AdminAccess | undefined> {
  const own = ownToken(options, terminal)
  const given = adminUrl(options, terminal)
  if (given !== undefined && own !== undefined) return { address: given, token: own }
  const path = configurationFile(options.config, terminal)
  const { configuration, report } = readConfiguration(path, terminal.env)
  if (isUsable(configuration, report))
    return { address: given ?? addressOf(configuration), token: await tokenOf(configuration, own) }
  writeReport(path, report, terminal)
  terminal.stderr.write(
    'postern: it does not say where the service is: give --admin-url and your own token\n',
  )
  return undefined
}
