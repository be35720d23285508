/** How verbs ask a service that runs: by its admin API, found and opened with the service's own configuration. */
import { userInfo } from 'node:os'
import type { Report } from '../config/report.ts'
import { readConfiguration, type Configuration } from '../configuration.ts'
import { splitListenAddress } from '../kernel/listen-address.ts'
import { readAdminToken } from '../operations/admin-token.ts'
import { configurationFile, tellReport } from './configuration-file.ts'
import { EXIT, type Terminal } from './verb.ts'

export interface AdminOrder {
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

async function send(configuration: Configuration, order: AdminOrder): Promise<unknown> {
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
export async function giveOrder(
  order: AdminOrder,
  file: string | undefined,
  terminal: Terminal,
  show: (answer: never) => string,
): Promise<number> {
  const path = configurationFile(file === undefined ? [] : [file], terminal)
  const { configuration, report } = readConfiguration(path, terminal.env)
  if (!isUsable(configuration, report)) {
    tellReport(path, report, terminal)
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
