import { Hasher } from '../directory/hasher.ts'
import { readPassword } from './read-password.ts'
import { EXIT, UsageError, type Verb } from './verb.ts'

/** `postern hash-password`: the argon2id hash of a password that is typed or piped in; never one on the command line. */
export const hashPasswordVerb: Verb = {
  async run(args, terminal) {
    if (args.length > 0)
      throw new UsageError('the password is read from standard input, where no process list shows it')
    const password = await readPassword(terminal)
    terminal.stdout.write(`${await new Hasher().hash(password)}\n`)
    return EXIT.done
  },
}
