/** How the service is: what is wrong first, then each part (C11.5.5). */
import type { ProcessStatus, Status, UpstreamStatus } from '../watch/status/status.ts'
import {
  commandLine,
  count,
  members,
  type Members,
  ok,
  type AdminOperation,
  type Schema,
  textSchema,
  flagSchema,
  listSchema,
  textsSchema,
} from '../operation/operation.ts'
import { sizeText } from '../../base/kernel/units.ts'
import { escapedForTerminal } from '../operation/terminal.ts'
import { EXIT } from '../operation/verb.ts'

const rows = (properties: Members, required: readonly string[], description: string): Schema =>
  listSchema(members(properties, required), description)

const configuration = members(
  {
    file: textSchema('Absent if it does not come from a file.'),
    digest: textSchema('SHA-256 of it, without its secrets: equal where equal configurations are in force.'),
    loaded: textSchema('When it was read.'),
    refused: members(
      {
        at: textSchema('When.'),
        via: textSchema('What ordered it: an address, a signal, a change of the file.'),
        problems: textsSchema('Why.'),
        cause: textSchema(
          '`store`, `trail`, `files` or `unknown`: nothing is wrong with the files, and it is tried again by itself. Absent for a mistake in them.',
        ),
      },
      ['at', 'via', 'problems'],
    ),
  },
  ['digest', 'loaded'],
)

const PARTS: Members = {
  troubles: textsSchema('What is wrong, in sentences, the worst first.'),
  ready: flagSchema('As /health/ready says.'),
  failing: textsSchema('Parts that keep it from serving.'),
  degraded: rows(
    { name: textSchema('The part.'), reason: textSchema('What is wrong.') },
    ['name', 'reason'],
    'Parts that work badly.',
  ),
  version: textSchema('Of Postern.'),
  node: textSchema('Of Node.'),
  at: textSchema('The time of this answer.'),
  started: textSchema('When the service was started.'),
  kind: { enum: ['service', 'sidecar'], description: 'A sidecar issues no tokens.' },
  configuration,
  workers: { type: 'object', description: 'How many processes are in each state.' },
  processes: rows(
    {
      name: textSchema('`main`, or `worker-N`.'),
      memoryBytes: count('Resident memory. Pages that processes share count in each.'),
      eventLoopDelaySeconds: {
        type: 'number',
        minimum: 0,
        description: 'The longest time of the last 15 to 30 s for which its event loop kept others waiting.',
      },
    },
    ['name'],
    'What each process takes of the machine.',
  ),
  memory: members({
    bytes: count('Of all processes together.'),
    limitBytes: count('The limit of the container, or the memory of the machine.'),
  }),
  data: members({
    bytes: count('All files in the data folder.'),
    freeBytes: count('Left on its disk.'),
  }),
  calls: members({
    inFlight: count('That are being answered now.'),
    shedding: flagSchema('Whether calls are refused because of overload.'),
    websockets: count('That are open.'),
    passwordChecksWaiting: count('Checks of passwords that wait for their turn.'),
  }),
  lockouts: count('Accounts, and pairs of account and network, whose next login is delayed.'),
  store: members({
    kind: textSchema('`sqlite` or `memory`.'),
    up: flagSchema('Whether the last call to it was answered.'),
    bytes: count('On the disk.'),
    feedAgeSeconds: { type: 'number', minimum: 0, description: 'Since the change feed was last read.' },
    nodes: count('That it counts, where several share it.'),
    nodeConfigurations: count('Different configurations of those nodes.'),
    nodeConfiguration: textSchema('A digest of the configuration, the same on nodes that serve the same.'),
  }),
  keys: rows(
    {
      name: textSchema('`ES256-2`'),
      state: textSchema('`announced`, `signing`, `retiring` or `retired`.'),
      nextRotation: textSchema('Of the key that signs: when another one does.'),
      ends: textSchema('When it is no longer published.'),
    },
    ['name', 'state'],
    'The signing keys.',
  ),
  certificates: rows(
    { name: textSchema('What shows it.'), expires: textSchema('When it ends.') },
    ['name', 'expires'],
    'Certificates that this service shows.',
  ),
  upstreams: rows(
    {
      backend: textSchema('Its name.'),
      healthy: count('Targets that get calls.'),
      ejected: count('Targets that get none, because they failed.'),
      inFlight: count('Calls that it is answering.'),
      waiting: count('Calls that wait for a connection.'),
      connections: count('That are open.'),
    },
    ['backend'],
    'What the service forwards to.',
  ),
  maintenance: rows(
    {
      scope: textSchema('What is closed.'),
      state: { enum: ['on', 'planned'] },
      from: textSchema('Since when, or from when on.'),
      until: textSchema('When it ends by itself.'),
      reason: textSchema('Why.'),
    },
    ['scope', 'state'],
    'In force and planned.',
  ),
  reportOnly: textsSchema('Areas that refuse nothing.'),
  disabled: rows(
    {
      client: textSchema('The id of a client.'),
      subject: textSchema('The subject of a user.'),
      since: textSchema('Since when.'),
    },
    ['since'],
    'Whom `client disable` and `user disable` have marked, whatever the configuration says: 100 at most.',
  ),
  audit: members(
    {
      kept: flagSchema('Whether a trail is kept.'),
      writable: flagSchema('Whether it can be written.'),
      openIntents: count('Calls whose outcome it does not tell yet.'),
      abandonedIntents: count(
        'Intents that ended processes have left without an outcome. 0 again when somebody has asked for all open ones.',
      ),
      signed: textSchema('When it was signed last.'),
      anchored: textSchema('When its end was told to an anchor last.'),
    },
    ['kept'],
  ),
}

const LABEL = 15

/** A line with its label; none where there is nothing to tell. */
const labelled = (label: string, ...parts: readonly (string | undefined)[]): string => {
  const known = parts.filter((part) => part !== undefined && part !== '')
  return known.length === 0 ? '' : `${label.padEnd(LABEL)}${escapedForTerminal(known.join(', '))}\n`
}

const counted = (value: number | undefined, what: string): string | undefined =>
  value === undefined ? undefined : `${value} ${what}`

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
  troubles.length === 0 ? '' : `\n${troubles.map((each) => `  ${escapedForTerminal(each)}\n`).join('')}`

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
  labelled(
    '  backend',
    backend,
    healthy === undefined ? undefined : `${healthy} of ${healthy + (ejected ?? 0)} targets get calls`,
    counted(inFlight, 'in flight'),
    counted(waiting, 'waiting'),
    counted(connections, 'connections'),
  )

const processText = ({ name, memoryBytes, eventLoopDelaySeconds }: ProcessStatus): string =>
  labelled(
    '  process',
    name,
    memoryBytes === undefined ? undefined : `${sizeText(memoryBytes)} memory`,
    eventLoopDelaySeconds === undefined
      ? undefined
      : `event loop late by ${Math.round(eventLoopDelaySeconds * 1000)} ms at most`,
  )

const upTo = (word: string, time: string | undefined): string | undefined =>
  time === undefined ? undefined : `${word} ${time}`

/** What each line tells, in its order. */
const LINES: readonly ((status: Status) => string)[] = [
  ({ at }) => labelled('now', at),
  ({ started, node }) => labelled('started', started, `Node ${node}`),
  ({ configuration: { file, digest, loaded }, store: { nodeConfiguration } }) =>
    labelled(
      'configuration',
      file,
      `in force since ${loaded}`,
      // That of `postern nodes` where several share a store: nodes have some settings of their own.
      `digest ${nodeConfiguration ?? digest.slice(0, 12)}`,
    ),
  ({ workers, memory: { bytes, limitBytes } }) =>
    labelled(
      'processes',
      workersText(workers),
      bytes === undefined || limitBytes === undefined
        ? undefined
        : `${sizeText(bytes)} of ${sizeText(limitBytes)} memory`,
    ),
  ({ processes }) => processes.map(processText).join(''),
  ({ data: { bytes, freeBytes } }) =>
    labelled(
      'data folder',
      bytes === undefined ? undefined : sizeText(bytes),
      freeBytes === undefined ? undefined : `${sizeText(freeBytes)} free on its disk`,
    ),
  ({ calls }) =>
    labelled(
      'calls',
      counted(calls.inFlight, 'in flight'),
      counted(calls.websockets, 'websockets'),
      counted(calls.passwordChecksWaiting, 'password checks waiting'),
    ),
  ({ upstreams }) => upstreams.map(upstreamText).join(''),
  ({ store: { kind, up, bytes, feedAgeSeconds, nodes } }) =>
    labelled(
      'store',
      kind,
      up === undefined ? undefined : UP.get(up),
      bytes === undefined ? undefined : sizeText(bytes),
      feedAgeSeconds === undefined ? undefined : `change feed read ${feedAgeSeconds.toFixed(1)} s ago`,
      counted(nodes, 'nodes'),
    ),
  ({ audit: { kept, writable, openIntents, abandonedIntents, signed, anchored } }) =>
    labelled(
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
        labelled(
          '  key',
          name,
          state,
          upTo('the next signs from', nextRotation),
          upTo('published until', ends),
        ),
      )
      .join(''),
  ({ certificates }) =>
    certificates.map(({ name, expires }) => labelled('  certificate', name, `until ${expires}`)).join(''),
  ({ maintenance }) =>
    maintenance
      .map(({ scope, state, from, until, reason }) =>
        labelled('  maintenance', scope, state, upTo('from', from), upTo('until', until), reason),
      )
      .join(''),
  ({ disabled = [] }) =>
    disabled
      .map(({ client, subject, since }) =>
        labelled(
          '  disabled',
          client === undefined ? `user ${subject}` : `client ${client}`,
          upTo('by a command since', since),
        ),
      )
      .join(''),
  ({ lockouts }) => (lockouts ? labelled('lockouts', counted(lockouts, 'delayed: postern lockouts')) : ''),
]

const statusText = (status: Status): string =>
  `${head(status)}${troubleLines(status)}\n${LINES.map((text) => text(status)).join('')}`

export const STATUS: AdminOperation = {
  method: 'GET',
  path: '/status',
  operationId: 'showStatus',
  needs: 'view',
  summary: 'How the service is: what is wrong first, then each part. What nobody has measured is absent',
  answers: {
    200: [
      'The status of all processes',
      members(PARTS, [
        'troubles',
        'ready',
        'failing',
        'degraded',
        'version',
        'at',
        'started',
        'configuration',
      ]),
    ],
  },
  handle: async (service) => {
    const { statusOf } = await import('./read-status.ts')
    return ok(await statusOf(service))
  },
  commands: [
    commandLine({
      words: ['status'],
      summary: 'Show how a running service is: what is wrong first, then each part',
      notes: ['Exit code 0: ready, 1: not ready, no answer, or nodes with different configurations.'],
      arguments: [],
      options: {},
      examples: [
        { line: 'postern status', does: 'show it for people' },
        { line: 'postern status --json --admin-url http://127.0.0.1:9090', does: 'print it for a program' },
      ],
      text: statusText,
      exit: ({ ready, store: { nodeConfigurations = 1 } }: Status) =>
        ready && nodeConfigurations <= 1 ? EXIT.done : EXIT.failed,
    }),
  ],
}
