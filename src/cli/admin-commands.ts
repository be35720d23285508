/** The verbs that give one order to a service that runs. */
import { parseArgs } from 'node:util'
import { configurationFile, EXIT, writeReport, type Terminal, UsageError, type Command } from './command.ts'
import { userInfo } from 'node:os'
import type { Report } from '../config/report.ts'
import { readConfiguration, type Configuration } from '../settings/configuration.ts'
import { splitListenAddress } from '../kernel/listen-address.ts'
import { readAdminToken } from '../operations/admin/listener.ts'
import { countOf, countOfFamilies } from './terminal.ts'

const REASON = { config: { type: 'string' }, reason: { type: 'string' } } as const

interface Reloaded {
  readonly warnings: readonly string[]
  readonly revoked: number
}

/** `postern reload`: the configuration is read anew; exit code 1, with every problem, if it was refused. */
export const reloadCommand: Command = {
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: REASON })
    const body = { by: operatorName(terminal), reason: values.reason }
    return callAdminApi(
      { method: 'POST', path: '/reload', body },
      values.config,
      terminal,
      ({ warnings, revoked }: Reloaded) =>
        `${warnings.map((each) => `${each}\n`).join('')}reloaded; ${revoked} revoked\n`,
    )
  },
}

/** `postern restart`: every worker process is replaced, one after the other. */
export const restartCommand: Command = {
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: REASON })
    const body = { by: operatorName(terminal), reason: values.reason }
    return callAdminApi(
      { method: 'POST', path: '/restart', body },
      values.config,
      terminal,
      ({ workers }: { readonly workers: number }) => `${workers} workers replaced\n`,
    )
  },
}

interface Told {
  readonly user: string
  readonly client?: string
  readonly network?: string
  readonly failures: number
  readonly delay: number
}

const lockoutLine = ({ user, client = 'any client', network, failures, delay }: Told): string =>
  `${user}  ${client}  ${network ?? 'networks new to the user'}  ${failures} failures  waits ${delay} ms\n`

/** `postern lockouts [list|clear]`: whose logins are slowed down by failures (C6.3.5). */
export const lockoutsCommand: Command = {
  help: `  list   Whose logins are slowed down by failures
  clear  Forget them: of --user, --client, --network, or of what all that are given have in common
`,
  run(args, terminal) {
    const text = { type: 'string' } as const
    const options = { ...REASON, user: text, client: text, network: text }
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
    const { config, reason, ...which } = values
    const [word = 'list', ...more] = positionals
    if (more.length > 0 || !['list', 'clear'].includes(word)) throw new UsageError('expected list or clear')
    if (word === 'list')
      return callAdminApi(
        { method: 'GET', path: '/lockouts' },
        config,
        terminal,
        ({ lockouts }: { readonly lockouts: readonly Told[] }) =>
          lockouts.length === 0 ? 'nobody\n' : lockouts.map(lockoutLine).join(''),
      )
    if (Object.keys(which).length === 0) throw new UsageError('expected --user, --client or --network')
    const query = { ...which, reason, by: operatorName(terminal) }
    return callAdminApi(
      { method: 'DELETE', path: '/lockouts', query },
      config,
      terminal,
      ({ cleared }: { readonly cleared: number }) => `${cleared} cleared\n`,
    )
  },
}

/** How verbs ask a service that runs: by its admin API, found and opened with the service's own configuration. */

export interface AdminCall {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE'
  readonly path: string
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: Readonly<Record<string, unknown>>
}

/** Told on stderr as it is; the exit code is 1. */
class AdminTrouble extends Error {}

interface Refusal {
  readonly error?: string
  readonly problems?: readonly string[]
}

const SECTIONS = ['admin', 'data']

/** A file that is half edited must not keep anybody from the switches: only what is needed must be readable. */
const isUsable = (configuration: Configuration | undefined, report: Report): configuration is Configuration =>
  configuration !== undefined &&
  !report.problems.some(({ path, severity }) => severity === 'error' && SECTIONS.includes(String(path[0])))

/** A service that listens everywhere is asked on this machine. */
function addressOf({ admin }: Configuration): string {
  const { host, port } = splitListenAddress(admin.listen)
  const here = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${here.includes(':') ? `[${here}]` : here}:${port}`
}

async function tokenOf({ admin, data }: Configuration): Promise<string> {
  if (admin.token !== undefined) return admin.token
  try {
    return await readAdminToken(data)
  } catch (error) {
    throw new AdminTrouble(`the admin token cannot be read: ${(error as Error).message}`)
  }
}

async function send(configuration: Configuration, order: AdminCall): Promise<unknown> {
  const { method, path, query = {}, body } = order
  const address = addressOf(configuration)
  const url = new URL(path, address)
  for (const [name, value] of Object.entries(query))
    if (value !== undefined) url.searchParams.set(name, value)
  const headers = {
    Authorization: `Bearer ${await tokenOf(configuration)}`,
    ...(body && { 'Content-Type': 'application/json' }),
  }
  const response = await fetch(url, { method, headers, ...(body && { body: JSON.stringify(body) }) }).catch(
    () => {
      throw new AdminTrouble(`nobody answers at ${address}: is the service running?`)
    },
  )
  const answer: unknown = await response.json().catch(() => ({}))
  if (response.ok) return answer
  const { error = `status ${response.status}`, problems = [] } = answer as Refusal
  throw new AdminTrouble([error, ...problems.map((problem) => `  ${problem}`)].join('\n'))
}

/** Who the log is told of. */
export function operatorName({ env }: Terminal): string {
  if (env['SUDO_USER']) return env['SUDO_USER']
  try {
    return userInfo().username
  } catch {
    return 'unknown'
  }
}

/**
 * Gives an order to the service that serves `file` (else that of POSTERN_CONFIG, else the demo) and hands what it
 * answered to `show`. Answers the exit code.
 */
export async function callAdminApi(
  order: AdminCall,
  file: string | undefined,
  terminal: Terminal,
  show: (answer: never) => string,
): Promise<number> {
  const path = configurationFile(file === undefined ? [] : [file], terminal)
  const { configuration, report } = readConfiguration(path, terminal.env)
  if (!isUsable(configuration, report)) {
    writeReport(path, report, terminal)
    return EXIT.refused
  }
  try {
    terminal.stdout.write(show((await send(configuration, order)) as never))
    return EXIT.done
  } catch (error) {
    if (!(error instanceof AdminTrouble)) throw error
    terminal.stderr.write(`postern: ${error.message}\n`)
    return EXIT.failed
  }
}

/** `postern revoke`: what is held is ended, at once and for good (C6.3.3). */

interface Revoked {
  readonly outcome: 'revoked' | 'previewed'
  readonly sessions: number
  readonly families: number
  readonly codes: number
  readonly consents: number
}

function told({ outcome, sessions, families, codes, consents }: Revoked): string {
  const list = [
    countOf(sessions, 'session'),
    countOfFamilies(families),
    countOf(codes, 'code'),
    countOf(consents, 'consent'),
  ].join(', ')
  return outcome === 'revoked'
    ? `revoked: ${list}, and the access tokens\n`
    : `would be revoked: ${list}, and the access tokens; nothing has changed\n`
}

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const RULE = { jti: text, family: text, subject: text, client: text, business: text }
const OPTIONS = { preview: flag, consents: flag, force: flag, config: text, reason: text }

export const revokeCommand: Command = {
  help: `  --jti ID                     One access token
  --family ID                  A family of refresh tokens, its code and its access tokens
  --subject SUBJECT            A user: sessions, families, codes, access tokens
  --client ID, --business CODE  Families, codes, access tokens; several of --subject, --client and --business
                               mean what all that are given have in common
  --consents                   Consents too; they stay otherwise
  --preview                    Tells what would be revoked, and changes nothing
  --force                      Also where an id is not known; else that is refused, with exit code 1
  --reason TEXT                For the log
  --config FILE                The configuration that is served
`,
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: { ...RULE, ...OPTIONS } })
    const { config, ...order } = values
    if (!Object.keys(RULE).some((name) => Object.hasOwn(values, name)))
      throw new UsageError('expected whose tokens')
    const body = { ...order, by: operatorName(terminal) }
    return callAdminApi({ method: 'POST', path: '/revoke', body }, config, terminal, told)
  },
}
