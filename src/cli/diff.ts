import { parseArgs } from 'node:util'
import { accessOf, compareAccess, type Access, type StoredPeopleRecords } from '../access.ts'
import { loadConfiguration } from '../check-configuration.ts'
import { isSidecar, type Configuration } from '../configuration.ts'
import { CLIENT, readStoredClient, readStoredUser, USER } from '../directory/stored-records.ts'
import { systemClock } from '../kernel/clock.ts'
import { sqliteFile } from '../stores/config.ts'
import { readRecordsOf } from '../stores/read-records.ts'
import { StoreError } from '../stores/store-error.ts'
import { tellReport } from './configuration-file.ts'
import { EXIT, UsageError, type Terminal, type Verb } from './verb.ts'

function read(file: string, terminal: Terminal): Configuration | undefined {
  const { configuration, report } = loadConfiguration(file, terminal.env)
  if (configuration === undefined) tellReport(file, report, terminal)
  return configuration
}

/**
 * The clients and users of the store that the service uses: the first configuration's, else the second's. Both are
 * judged by the same records, since what is compared is the configurations.
 */
function readStore(configurations: readonly Configuration[], { stderr }: Terminal): StoredPeopleRecords {
  for (const configuration of configurations) {
    if (isSidecar(configuration) || configuration.store.kind === 'memory') continue
    const path = sqliteFile(configuration.data)
    const records = readRecordsOf(path, [CLIENT, USER], systemClock.now())
    if (records === undefined) continue
    const clients = records[CLIENT].map(readStoredClient)
    const users = records[USER].map(readStoredUser)
    stderr.write(`postern: with ${clients.length} clients and ${users.length} users of the store ${path}\n`)
    return { clients, users }
  }
  stderr.write(
    'postern: there is no store to read: only clients and users of the configurations are compared\n',
  )
  return { clients: [], users: [] }
}

const HEADINGS = { anybody: 'anybody', client: 'clients', role: 'roles', user: 'users' } as const

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

async function compare(before: Configuration, after: Configuration, terminal: Terminal) {
  const stored = readStore([before, after], terminal)
  const parts = { environment: terminal.env, stored, clock: systemClock }
  return compareAccess(await accessOf(before, parts), await accessOf(after, parts))
}

/** `postern diff OLD NEW`: who gains and who loses access to which actions, between two configurations. */
export const diffVerb: Verb = {
  help: `  Clients and roles by action, users by the role that they have at a business; of the configurations and
  of the store, which is only read. An area that becomes report-only is open to anybody.
  --json   {gained, lost}, each a list of {kind, who, what, where}
`,
  async run(args, terminal) {
    const options = { json: { type: 'boolean' } } as const
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options })
    const [old, next, ...more] = positionals
    if (old === undefined || next === undefined || more.length > 0)
      throw new UsageError('expected two configuration files')
    const before = read(old, terminal)
    const after = read(next, terminal)
    if (before === undefined || after === undefined) return EXIT.refused
    try {
      const { gained, lost } = await compare(before, after, terminal)
      terminal.stdout.write(
        values.json === true ? `${JSON.stringify({ gained, lost }, null, 2)}\n` : print(gained, lost),
      )
      return EXIT.done
    } catch (thrown) {
      if (!(thrown instanceof StoreError)) throw thrown
      terminal.stderr.write(`postern: ${thrown.message}\n`)
      return EXIT.failed
    }
  },
}
