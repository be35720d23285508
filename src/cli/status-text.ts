/** A status as a page for people: what is wrong comes first. */
import { printable } from '../operator/text.ts'
import type { Status, UpstreamStatus } from '../watch/status/status.ts'

const LABEL = 15

/** A line with its label; none where there is nothing to tell. */
const line = (label: string, ...parts: readonly (string | undefined)[]): string => {
  const known = parts.filter((part) => part !== undefined && part !== '')
  return known.length === 0 ? '' : `${label.padEnd(LABEL)}${printable(known.join(', '))}\n`
}

const counted = (value: number | undefined, what: string): string | undefined =>
  value === undefined ? undefined : `${value} ${what}`

const KIB = 1024
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

function sizeText(bytes: number | undefined): string | undefined {
  if (bytes === undefined) return undefined
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log(Math.max(1, bytes)) / Math.log(KIB)))
  return `${Math.round(bytes / KIB ** power)} ${UNITS[power] ?? 'B'}`
}

const UP = new Map([
  [true, 'up'],
  [false, 'OUT OF REACH'],
])

const WRITABLE = new Map<boolean | undefined, string>([
  [true, 'can be written'],
  [false, 'CANNOT BE WRITTEN'],
])

const head = ({ ready, troubles, version, kind }: Status): string =>
  `${ready ? 'READY' : 'NOT READY'}  Postern ${version}${kind === 'sidecar' ? ', a sidecar' : ''}` +
  `${troubles.length === 0 ? ', nothing wrong' : ''}\n`

const troubleLines = ({ troubles }: Status): string =>
  troubles.length === 0 ? '' : `\n${troubles.map((each) => `  ${printable(each)}\n`).join('')}`

const workersText = (workers: Status['workers']): string =>
  Object.entries(workers)
    .map(([state, number]) => `${number} ${state}`)
    .join(', ')

const upstreamText = ({
  backend,
  healthy,
  ejected,
  inFlight,
  waiting,
  connections,
}: UpstreamStatus): string =>
  line(
    '  backend',
    backend,
    healthy === undefined ? undefined : `${healthy} of ${healthy + (ejected ?? 0)} targets get calls`,
    counted(inFlight, 'in flight'),
    counted(waiting, 'waiting'),
    counted(connections, 'connections'),
  )

const upTo = (word: string, time: string | undefined): string | undefined =>
  time === undefined ? undefined : `${word} ${time}`

/** What each line tells, in its order. */
const LINES: readonly ((status: Status) => string)[] = [
  ({ at }) => line('now', at),
  ({ started, node }) => line('started', started, `Node ${node}`),
  ({ configuration: { file, digest, loaded } }) =>
    line('configuration', file, `in force since ${loaded}`, `digest ${digest.slice(0, 12)}`),
  ({ workers }) => line('processes', workersText(workers)),
  ({ calls }) =>
    line(
      'calls',
      counted(calls.inFlight, 'in flight'),
      counted(calls.websockets, 'websockets'),
      counted(calls.passwordChecksWaiting, 'password checks waiting'),
    ),
  ({ upstreams }) => upstreams.map(upstreamText).join(''),
  ({ store: { kind, up, bytes, feedAgeSeconds, nodes, nodeConfiguration } }) =>
    line(
      'store',
      kind,
      up === undefined ? undefined : UP.get(up),
      sizeText(bytes),
      feedAgeSeconds === undefined ? undefined : `change feed read ${feedAgeSeconds.toFixed(1)} s ago`,
      counted(nodes, 'nodes'),
      nodeConfiguration === undefined ? undefined : `configuration ${nodeConfiguration} of this node`,
    ),
  ({ audit: { kept, writable, openIntents, abandonedIntents, signed, anchored } }) =>
    line(
      'audit trail',
      kept ? (WRITABLE.get(writable) ?? 'kept') : 'not kept',
      counted(openIntents, 'open intents'),
      counted(abandonedIntents, 'abandoned intents'),
      upTo('signed', signed),
      upTo('anchored', anchored),
    ),
  ({ keys }) =>
    keys
      .map(({ name, state, nextRotation, ends }) =>
        line('  key', name, state, upTo('the next signs from', nextRotation), upTo('published until', ends)),
      )
      .join(''),
  ({ certificates }) =>
    certificates.map(({ name, expires }) => line('  certificate', name, `until ${expires}`)).join(''),
  ({ maintenance }) =>
    maintenance
      .map(({ scope, state, from, until, reason }) =>
        line('  maintenance', scope, state, upTo('from', from), upTo('until', until), reason),
      )
      .join(''),
  ({ lockouts }) => (lockouts ? line('lockouts', counted(lockouts, 'delayed: postern lockouts')) : ''),
]

export const statusText = (status: Status): string =>
  `${head(status)}${troubleLines(status)}\n${LINES.map((text) => text(status)).join('')}`
