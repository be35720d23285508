import { parseArgs } from 'node:util'
import { hashSecret } from '../directory/secret-hash.ts'
import { newSecret } from '../kernel/ids.ts'
import { DURATION_PATTERN, parseDuration } from '../kernel/units.ts'
import { OPERATOR_NAME, ROLES } from '../operations/config.ts'
import { type Command, EXIT, singleName, UsageError } from './command.ts'
import { printJson } from './terminal.ts'

/** An entry of `admin.tokens`. */
interface TokenEntry {
  readonly name: string
  readonly role: string
  readonly hash: string
  readonly expires?: string
}

function expiryOf(given: string | undefined): Pick<TokenEntry, 'expires'> {
  if (given === undefined) return {}
  if (!new RegExp(DURATION_PATTERN).test(given))
    throw new UsageError(`--expires: expected a duration such as "90d", got "${given}"`)
  return { expires: new Date(Date.now() + parseDuration(given)).toISOString() }
}

function entryOf(
  name: string,
  role: string | undefined,
  expires: string | undefined,
  token: string,
): TokenEntry {
  if (!new RegExp(OPERATOR_NAME.pattern).test(name))
    throw new UsageError(`expected ${OPERATOR_NAME.expected}`)
  if (!ROLES.some((each) => each === role))
    throw new UsageError(`--role: expected one of ${ROLES.join(', ')}`)
  return { name, role: role ?? '', hash: hashSecret(token), ...expiryOf(expires) }
}

const yamlOf = (entry: TokenEntry): string =>
  `- { ${Object.entries(entry)
    .map(([key, value]) => `${key}: '${String(value)}'`)
    .join(', ')} }`

/** `postern admin-token add NAME --role ROLE`: makes the token of a named operator (C12.2.4). Writes no file. */
export const adminTokenCommand: Command = {
  help: `Usage: postern admin-token add NAME --role ROLE [--expires 90d] [--json]

  Makes a token for an operator, shows it once, and prints the line for \`admin.tokens\` in the configuration. The line
  has only a hash of the token. Reload the service to put it in force.

  --role view         Status and metrics
  --role operate      Also maintenance, reload, restart, revocation, lockouts, the configuration, explain
  --role administer   Also the directory, sessions, keys, erasing
  --role audit        Status, the configuration, explain and the audit trail; no changes
  --expires DURATION  Refuse it after this time, such as 90d. Default: never
  --json              Print {name, role, hash, expires, token}
`,
  run(args, { stdout, stderr, ...rest }) {
    const text = { type: 'string' } as const
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { role: text, expires: text, json: { type: 'boolean' } },
    })
    const [word, ...names] = positionals
    if (word !== 'add') throw new UsageError('expected add NAME')
    const token = newSecret()
    const entry = entryOf(singleName(names, 'name of an operator'), values.role, values.expires, token)
    if (values.json === true) printJson({ ...entry, token }, { stdout, stderr, ...rest })
    else stdout.write(`token  ${token}\n\nadmin:\n  tokens:\n    ${yamlOf(entry)}\n`)
    stderr.write(
      'The token is shown only now. Add the entry to the configuration, then run: postern reload\n',
    )
    return Promise.resolve(EXIT.done)
  },
}
