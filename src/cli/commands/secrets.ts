/** The commands that make a secret, or the hash of one: admin-token, hash-password. */
import { Hasher, hashSecret } from '../../identity/directory/hashing/hasher.ts'
import { newSecret } from '../../base/kernel/ids.ts'
import { parseDuration } from '../../base/kernel/units.ts'
import { printJson, readPassword } from '../../operate/operation/terminal.ts'
import { EXIT, UsageError } from '../../operate/operation/verb.ts'
import { OPERATOR_NAME, ROLES } from '../../operate/settings/admin.ts'
import { ADMIN_TOKEN, HASH_PASSWORD } from '../line/tables.ts'
import { commandOf } from '../line/command.ts'

/** An entry of `admin.tokens`. */
interface TokenEntry {
  readonly name: string
  readonly role: string
  readonly hash: string
  readonly expires?: string
}

const expiryOf = (given: string | undefined): Pick<TokenEntry, 'expires'> =>
  given === undefined ? {} : { expires: new Date(Date.now() + parseDuration(given)).toISOString() }

/** @throws UsageError */
function entryOf(
  name: string,
  { role, expires }: { readonly role?: string | undefined; readonly expires?: string | undefined },
  token: string,
): TokenEntry {
  if (!new RegExp(OPERATOR_NAME.pattern).test(name))
    throw new UsageError(`expected ${OPERATOR_NAME.expected}`)
  if (role === undefined) throw new UsageError(`expected --role: one of ${ROLES.join(', ')}`)
  return { name, role, hash: hashSecret(token), ...expiryOf(expires) }
}

const yamlOf = (entry: TokenEntry): string =>
  `- { ${Object.entries(entry)
    .map(([key, value]) => `${key}: '${String(value)}'`)
    .join(', ')} }`

/** `postern admin-token add NAME --role ROLE`: makes the token of a named operator (C12.2.4). Writes no file. */
export const adminTokenCommand = commandOf(ADMIN_TOKEN, {
  add: ({ positionals: [name = ''], values }, terminal) => {
    const token = newSecret()
    const entry = entryOf(name, values, token)
    if (values.json === true) printJson({ ...entry, token }, terminal)
    else terminal.stdout.write(`token  ${token}\n\nadmin:\n  tokens:\n    ${yamlOf(entry)}\n`)
    terminal.stderr.write(
      'The token is shown only now. Add the entry to the configuration, then run: postern reload\n',
    )
    return EXIT.done
  },
})

/** `postern hash-password`: prints the argon2id hash of a password that is typed or piped in. */
export const hashPasswordCommand = commandOf(HASH_PASSWORD, {
  '': async ({ values }, terminal) => {
    const hash = await new Hasher().hash(await readPassword(terminal))
    if (values.json === true) printJson({ hash }, terminal)
    else terminal.stdout.write(`${hash}\n`)
    return EXIT.done
  },
})
