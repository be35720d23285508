/** Who gains and who loses access, as commands print it. */
import type { AccessRow } from '../watch/status/configuration-orders.ts'

const HEADINGS = { anybody: 'anybody', client: 'clients', role: 'roles', user: 'users' } as const

interface AccessRows {
  readonly gained: readonly AccessRow[]
  readonly lost: readonly AccessRow[]
}

/** One line for each access that somebody gains (`+`) or loses (`-`), with all places where. */
function lines(sign: '+' | '-', changes: readonly AccessRow[]): string[] {
  const grouped = Map.groupBy(changes, ({ who, what }) => `${who}  ${what}`)
  return [...grouped].map(([text, each]) => {
    const places = each.map(({ where }) => where).filter((where) => where !== '')
    return `  ${sign} ${text}${places.length > 0 ? `  at ${places.join(', ')}` : ''}\n`
  })
}

export function accessChangeText({ gained, lost }: AccessRows): string {
  const parts = Object.entries(HEADINGS).flatMap(([kind, heading]) => {
    const mine = (changes: readonly AccessRow[]): AccessRow[] =>
      changes.filter((access) => access.kind === kind)
    const all = [...lines('-', mine(lost)), ...lines('+', mine(gained))]
    return all.length === 0 ? [] : [`${heading}\n`, ...all]
  })
  return parts.length === 0 ? 'nobody gains or loses access\n' : parts.join('')
}
