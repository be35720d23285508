/** The listeners of a configuration: no two may listen at one place. */
import type { KeyPath, Problems } from '../config/problems.ts'
import { bindingOf, type ListenAddress } from '../kernel/listen-address.ts'
import type { Configuration } from './configuration.ts'

const MOST = 65_535

const isIPv6 = (host: string): boolean => host.includes(':')

/** Whether a listener at one address takes the connections that are for the other. `::` takes those by IPv4 too. */
const covers = (host: string, other: string): boolean =>
  host === other || host === '::' || (host === '0.0.0.0' && !isIPv6(other))

const meet = (one: ListenAddress, other: ListenAddress): boolean =>
  one.port !== 0 && one.port === other.port && (covers(one.host, other.host) || covers(other.host, one.host))

interface Listener {
  readonly name: string
  readonly path: KeyPath
  readonly address: string
}

function listenersOf({ server, admin }: Pick<Configuration, 'server' | 'admin'>): readonly Listener[] {
  const { probes } = admin
  return [
    { name: 'server.listen', path: ['server', 'listen'], address: server.listen },
    { name: 'admin.listen', path: ['admin', 'listen'], address: admin.listen },
    ...(probes === undefined ? [] : [{ name: 'admin.probes', path: ['admin', 'probes'], address: probes }]),
  ]
}

/** Reports ports that there are not, and the same port for two listeners at one address. Port 0 is any free one. */
export function checkListeners(configuration: Configuration, problems: Problems): void {
  const before: Listener[] = []
  for (const listener of listenersOf(configuration)) {
    const { path, address } = listener
    const own = bindingOf(address)
    if (own.port > MOST) problems.error(path, `expected a port from 0 to ${MOST}, got ${own.port}`)
    const other = before.find((each) => meet(bindingOf(each.address), own))
    if (other !== undefined)
      problems.error(
        path,
        `has the port of ${other.name}: ${own.port}`,
        'give each listener a port of its own',
      )
    before.push(listener)
  }
}
