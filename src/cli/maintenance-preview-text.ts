/** What a maintenance switch would close, as `postern maintenance on --preview` prints it. */
import type { MaintenancePreview } from '../maintenance/preview.ts'
import { countOf, rowLines } from '../operator/text.ts'

/** As the admin API answers it. */
type Answered = Omit<MaintenancePreview, 'calls'> & {
  readonly calls: Omit<MaintenancePreview['calls'], 'since'> & { readonly since: string }
}

/** Names that one line shows. */
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
