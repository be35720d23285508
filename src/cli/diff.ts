import { parseArgs } from 'node:util'
import { accessOf, compareAccess, type Access } from '../access.ts'
import { loadConfiguration } from '../check-configuration.ts'
import { tellReport } from './configuration-file.ts'
import { EXIT, UsageError, type Terminal, type Verb } from './verb.ts'

async function read(file: string, terminal: Terminal): Promise<readonly Access[] | undefined> {
  const { configuration, report } = loadConfiguration(file, terminal.env)
  if (configuration !== undefined) return accessOf(configuration, terminal.env)
  tellReport(file, report, terminal)
  return undefined
}

const HEADINGS = { client: 'clients', role: 'roles', user: 'users' } as const

/** One line for what somebody gains or loses, wherever it is. */
function lines(sign: '+' | '-', changes: readonly Access[]): string[] {
  const grouped = Map.groupBy(changes, ({ who, what }) => `${who}  ${what}`)
  return [...grouped].map(([text, each]) => {
    const places = each.map(({ where }) => where).filter((where) => where !== '')
    return `  ${sign} ${text}${places.length > 0 ? `  at ${places.join(', ')}` : ''}\n`
  })
}

function print(gained: readonly Access[], lost: readonly Access[]): string {
  const parts = Object.entries(HEADINGS).flatMap(([kind, heading]) => {
    const mine = (changes: readonly Access[]): Access[] => changes.filter((access) => access.kind === kind)
    const told = [...lines('-', mine(lost)), ...lines('+', mine(gained))]
    return told.length === 0 ? [] : [`${heading}\n`, ...told]
  })
  return parts.length === 0 ? 'nobody gains or loses access\n' : parts.join('')
}

/** `postern diff OLD NEW`: who gains and who loses access to which actions, between two configurations. */
export const diffVerb: Verb = {
  help: `  Clients and roles by action, users by the role that they have at a business.
  --json   {gained, lost}, each a list of {kind, who, what, where}
`,
  async run(args, terminal) {
    const options = { json: { type: 'boolean' } } as const
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options })
    const [old, next, ...more] = positionals
    if (old === undefined || next === undefined || more.length > 0)
      throw new UsageError('expected two configuration files')
    const before = await read(old, terminal)
    const after = await read(next, terminal)
    if (before === undefined || after === undefined) return EXIT.refused
    const { gained, lost } = compareAccess(before, after)
    terminal.stdout.write(
      values.json === true ? `${JSON.stringify({ gained, lost }, null, 2)}\n` : print(gained, lost),
    )
    return EXIT.done
  },
}
