/** The verbs that give one order to a service that runs. */
import { parseArgs } from 'node:util'
import { giveOrder, operatorName } from './admin-client.ts'
import { UsageError, type Verb } from './verb.ts'

const REASON = { config: { type: 'string' }, reason: { type: 'string' } } as const

interface Reloaded {
  readonly warnings: readonly string[]
  readonly revoked: number
}

/** `postern reload`: the configuration is read anew; exit code 1, with every problem, if it was refused. */
export const reloadVerb: Verb = {
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: REASON })
    const body = { by: operatorName(terminal), reason: values.reason }
    return giveOrder(
      { method: 'POST', path: '/reload', body },
      values.config,
      terminal,
      ({ warnings, revoked }: Reloaded) =>
        `${warnings.map((each) => `${each}\n`).join('')}reloaded; ${revoked} revoked\n`,
    )
  },
}

/** `postern restart`: every worker process is replaced, one after the other. */
export const restartVerb: Verb = {
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: REASON })
    const body = { by: operatorName(terminal), reason: values.reason }
    return giveOrder(
      { method: 'POST', path: '/restart', body },
      values.config,
      terminal,
      ({ workers }: { readonly workers: number }) => `${workers} workers replaced\n`,
    )
  },
}

interface Told {
  readonly user: string
  readonly client?: string
  readonly network?: string
  readonly failures: number
  readonly delay: number
}

const lockoutLine = ({ user, client = 'any client', network, failures, delay }: Told): string =>
  `${user}  ${client}  ${network ?? 'networks new to the user'}  ${failures} failures  waits ${delay} ms\n`

/** `postern lockouts [list|clear]`: whose logins are slowed down by failures (C6.3.5). */
export const lockoutsVerb: Verb = {
  help: `  list   Whose logins are slowed down by failures
  clear  Forget them: of --user, --client, --network, or of what all that are given have in common
`,
  run(args, terminal) {
    const text = { type: 'string' } as const
    const options = { ...REASON, user: text, client: text, network: text }
    const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options })
    const { config, reason, ...which } = values
    const [word = 'list', ...more] = positionals
    if (more.length > 0 || !['list', 'clear'].includes(word)) throw new UsageError('expected list or clear')
    if (word === 'list')
      return giveOrder(
        { method: 'GET', path: '/lockouts' },
        config,
        terminal,
        ({ lockouts }: { readonly lockouts: readonly Told[] }) =>
          lockouts.length === 0 ? 'nobody\n' : lockouts.map(lockoutLine).join(''),
      )
    if (Object.keys(which).length === 0) throw new UsageError('expected --user, --client or --network')
    const query = { ...which, reason, by: operatorName(terminal) }
    return giveOrder(
      { method: 'DELETE', path: '/lockouts', query },
      config,
      terminal,
      ({ cleared }: { readonly cleared: number }) => `${cleared} cleared\n`,
    )
  },
}
