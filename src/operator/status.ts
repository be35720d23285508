/** The admin API's route that tells how the service is (C11.5.5). */
import { type Operation, count, members, type Members, ok, type Schema, text } from './operation.ts'

const list = (items: Schema, description: string): Schema => ({ type: 'array', items, description })
const lines = (description: string): Schema => list({ type: 'string' }, description)
const flag = (description: string): Schema => ({ type: 'boolean', description })
const rows = (properties: Members, required: readonly string[], description: string): Schema =>
  list(members(properties, required), description)

const configuration = members(
  {
    file: text('Absent if it does not come from a file.'),
    digest: text('SHA-256 of it, without its secrets: equal where equal configurations are in force.'),
    loaded: text('When it was read.'),
    refused: members(
      {
        at: text('When.'),
        via: text('What ordered it: an address, a signal, a change of the file.'),
        problems: lines('Why.'),
        cause: text(
          '`store`, `trail`, `files` or `unknown`: nothing is wrong with the files, and it is tried again by itself. Absent for a mistake in them.',
        ),
      },
      ['at', 'via', 'problems'],
    ),
  },
  ['digest', 'loaded'],
)

const PARTS: Members = {
  troubles: lines('What is wrong, in sentences, the worst first.'),
  ready: flag('As /health/ready says.'),
  failing: lines('Parts that keep it from serving.'),
  degraded: rows(
    { name: text('The part.'), reason: text('What is wrong.') },
    ['name', 'reason'],
    'Parts that work badly.',
  ),
  version: text('Of Postern.'),
  node: text('Of Node.'),
  at: text('The time of this answer.'),
  started: text('When the service was started.'),
  kind: { enum: ['service', 'sidecar'], description: 'A sidecar issues no tokens.' },
  configuration,
  workers: { type: 'object', description: 'How many processes are in each state.' },
  calls: members({
    inFlight: count('That are being answered now.'),
    shedding: flag('Whether calls are refused because of overload.'),
    websockets: count('That are open.'),
    passwordChecksWaiting: count('Checks of passwords that wait for their turn.'),
  }),
  lockouts: count('Accounts, and pairs of account and network, whose next login is delayed.'),
  store: members({
    kind: text('`sqlite` or `memory`.'),
    up: flag('Whether the last call to it was answered.'),
    bytes: count('On the disk.'),
    feedAgeSeconds: { type: 'number', minimum: 0, description: 'Since the change feed was last read.' },
    nodes: count('That it counts, where several share it.'),
    nodeConfiguration: text('A digest of the configuration, the same on nodes that serve the same.'),
  }),
  keys: rows(
    {
      name: text('`ES256-2`'),
      state: text('`announced`, `signing`, `retiring` or `retired`.'),
      nextRotation: text('Of the key that signs: when another one does.'),
      ends: text('When it is no longer published.'),
    },
    ['name', 'state'],
    'The signing keys.',
  ),
  certificates: rows(
    { name: text('What shows it.'), expires: text('When it ends.') },
    ['name', 'expires'],
    'Certificates that this service shows.',
  ),
  upstreams: rows(
    {
      backend: text('Its name.'),
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
      scope: text('What is closed.'),
      state: { enum: ['on', 'planned'] },
      from: text('Since when, or from when on.'),
      until: text('When it ends by itself.'),
      reason: text('Why.'),
    },
    ['scope', 'state'],
    'In force and planned.',
  ),
  reportOnly: lines('Areas that refuse nothing.'),
  audit: members(
    {
      kept: flag('Whether a trail is kept.'),
      writable: flag('Whether it can be written.'),
      openIntents: count('Calls whose outcome it does not tell yet.'),
      abandonedIntents: count(
        'Intents that ended processes have left without an outcome. 0 again when somebody has asked for all open ones.',
      ),
      signed: text('When it was signed last.'),
      anchored: text('When its end was told to an anchor last.'),
    },
    ['kept'],
  ),
}

export const STATUS_ROUTE: Operation = {
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
  handle: async (control) => ok(await control.status()),
}
