/** Environment variables that override settings of any configuration (C10). */
import type { Environment } from '../config/references.ts'
import type { Place, Problems } from '../config/problems.ts'
import { splitListenAddress } from '../kernel/listen-address.ts'

const MAX_PORT = 65_535
const ENVIRONMENT: Place = { file: 'environment', line: 0 }

function readPort(text: string): number | undefined {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : undefined
  return port !== undefined && port <= MAX_PORT ? port : undefined
}

function withPort(listen: string, port: number): string {
  const { host } = splitListenAddress(listen)
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The part of a configuration that the environment may override. */
export interface Overridable {
  readonly data: string
  readonly server: { readonly listen: string }
  readonly admin: { readonly listen: string }
}

type Override = <T extends Overridable>(configuration: T, value: string) => T | undefined

const onPort =
  (section: 'server' | 'admin'): Override =>
  (configuration, value) => {
    const port = readPort(value)
    if (port === undefined) return undefined
    const old = configuration[section]
    return { ...configuration, [section]: { ...old, listen: withPort(old.listen, port) } }
  }

interface Row {
  readonly expected: string
  readonly description: string
  readonly apply: Override
}

/** By name of the environment variable. An empty one counts as not set. */
export const OVERRIDES: Readonly<Record<string, Row>> = {
  POSTERN_PORT: {
    expected: 'a port from 0 to 65535',
    description: 'Port of `server.listen`, and of the URLs that are made from it. 0 means any free port.',
    apply: onPort('server'),
  },
  POSTERN_ADMIN_PORT: {
    expected: 'a port from 0 to 65535',
    description: 'Port of `admin.listen`. 0 means any free port.',
    apply: onPort('admin'),
  },
  POSTERN_DATA: {
    expected: 'a folder',
    description: 'The folder `data`, for keys and state.',
    apply: (configuration, data) => ({ ...configuration, data }),
  },
}

/** The configuration with the environment's overrides. An invalid value is reported as an error. */
export function applyOverrides<T extends Overridable>(
  configuration: T,
  environment: Environment,
  problems: Problems,
): T {
  let result = configuration
  for (const [name, { apply, expected }] of Object.entries(OVERRIDES)) {
    const value = environment[name]
    if (value === undefined || value === '') continue
    const next = apply(result, value)
    if (next) result = next
    else problems.errorAt(ENVIRONMENT, [name], `expected ${expected}, got ${JSON.stringify(value)}`)
  }
  return result
}
