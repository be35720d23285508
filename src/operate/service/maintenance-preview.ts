/** What a maintenance switch would close: how the admin API answers it, and how people read it (C11.5.6). */
import { MOST_CLIENTS, MOST_LISTED, type MaintenancePreview } from '../../gateway/maintenance/preview.ts'
import { instantText } from '../../base/kernel/units.ts'
import { count, members, type Schema, textSchema, listSchema, textsSchema } from '../operation/operation.ts'
import { countOf, rowLines } from '../operation/terminal.ts'

const names = (description: string): Schema => ({
  ...members({ count: count('How many.'), names: textsSchema(`The first ${MOST_LISTED}.`) }, [
    'count',
    'names',
  ]),
  description,
})

export const PREVIEW_SCHEMA: Schema = members(
  {
    scope: textSchema('What would be closed.'),
    closes: members(
      {
        businesses: names('Of the configuration and of the store. Absent where they stand in a file.'),
        areas: textsSchema('Areas with a part of it.'),
        backends: textsSchema('Backends that answer it.'),
        actions: names('Such as `GET,POST fund-data/fund-list`.'),
      },
      ['areas', 'backends', 'actions'],
    ),
    calls: members(
      {
        since: textSchema('Calls are counted since then: about an hour ago, or the start of the service.'),
        total: count('Calls that came for what it closes.'),
        refused: count('Those that it would have refused. Allowed addresses are not counted apart.'),
        clients: listSchema(
          members({ client: textSchema('A client id.'), calls: count('Refused ones.') }, ['client', 'calls']),
          `The ${MOST_CLIENTS} clients with most of them.`,
        ),
        others: count('Those of all other callers.'),
      },
      ['since', 'total', 'refused', 'clients', 'others'],
    ),
    websockets: count('Open websockets behind it, which stay open. Absent where they are not counted apart.'),
    passes: members(
      {
        clients: textsSchema('Clients that may still call.'),
        addresses: textsSchema('Addresses that may still call.'),
      },
      ['clients', 'addresses'],
    ),
  },
  ['scope', 'closes', 'calls', 'passes'],
)

export const previewBody = ({ calls, ...preview }: MaintenancePreview) => ({
  ...preview,
  calls: { ...calls, since: instantText(calls.since) },
})

/** A preview as it is answered. */
type Answered = ReturnType<typeof previewBody>

/** How many names one line shows. */
const SHOWN = 8

function namesText(names: readonly string[], count = names.length): string {
  const shown = names.slice(0, SHOWN).join(', ')
  return count > SHOWN ? `${shown} and ${count - SHOWN} more` : shown || 'none'
}

function closesText({ closes: { businesses, areas, backends, actions } }: Answered): string {
  const lines = [
    ...(businesses === undefined ? [] : [`businesses  ${namesText(businesses.names, businesses.count)}`]),
    `areas       ${namesText(areas)}`,
    `backends    ${namesText(backends)}`,
    `actions     ${namesText(actions.names, actions.count)}`,
  ]
  return lines.map((line) => `  ${line}\n`).join('')
}

function callsText({ calls: { since, total, refused, clients, others } }: Answered): string {
  const head = `${countOf(total, 'call')} since ${since}, of which it would have refused ${refused}\n`
  if (refused === 0) return head
  const rows = clients.map(({ client, calls }) => [`  ${client}`, String(calls)])
  const all = others === 0 ? rows : [...rows, ['  others', String(others)]]
  return head + rowLines(['  CLIENT', 'CALLS'], all).join('')
}

function passesText({ passes: { clients, addresses } }: Answered): string {
  const who = [...clients.map((id) => `client ${id}`), ...addresses.map((address) => `address ${address}`)]
  return who.length === 0 ? 'nobody would pass\n' : `would pass: ${who.join(', ')}\n`
}

const websocketsText = ({ websockets }: Answered): string =>
  websockets ? `${countOf(websockets, 'open websocket')} would stay open\n` : ''

export const previewText = (preview: Answered): string =>
  [
    `would close ${preview.scope}:\n`,
    closesText(preview),
    callsText(preview),
    websocketsText(preview),
    passesText(preview),
    'Nothing was changed.\n',
  ].join('')
