import { Hasher } from '../directory/hasher.ts'
import { EXIT } from '../operator/verb.ts'
import { HASH_PASSWORD } from './tables/secrets.ts'
import { printJson, readPassword } from '../operator/terminal.ts'
import { commandOf } from './verbs.ts'

/** `postern hash-password`: prints the argon2id hash of a password that is typed or piped in. */
export const hashPasswordCommand = commandOf(HASH_PASSWORD, {
  '': async ({ values }, terminal) => {
    const hash = await new Hasher().hash(await readPassword(terminal))
    if (values.json === true) printJson({ hash }, terminal)
    else terminal.stdout.write(`${hash}\n`)
    return EXIT.done
  },
})
