/** `postern client`, `user`, `business`, `fund` and `role`. */
import { parseArgs } from 'node:util'
import { DURATION_PATTERN, parseDuration } from '../../kernel/units.ts'
import { type Subcommand, UsageError } from '../command.ts'
import { ORDER } from '../order-options.ts'
import { printJson, readPassword } from '../terminal.ts'
import { nounCommand } from './noun-command.ts'
import { JSON_TOO, NAMES, namesOf, onDirectory } from './noun-task.ts'
import { endedLines, showSecret } from './record-text.ts'

const OVERLAP = '1d'

function overlapOf(given: string): number {
  if (!new RegExp(DURATION_PATTERN).test(given))
    throw new UsageError(`--overlap: expected a duration such as "12h" or "7d", got "${given}"`)
  return parseDuration(given)
}

const rotateSecret: Subcommand['run'] = (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { ...JSON_TOO, overlap: { type: 'string', default: OVERLAP } },
  })
  const [id = ''] = namesOf(NAMES.client, positionals)
  const overlap = overlapOf(values.overlap)
  const work: Parameters<typeof onDirectory>[0]['work'] = async (directory) => {
    const { record, secret } = await directory.rotateSecret(id, overlap)
    if (values.json === true) printJson({ record, secret }, terminal)
    else showSecret(id, secret, terminal)
    const ends = record['oldSecretEndsAt']
    terminal.stderr.write(
      typeof ends === 'string'
        ? `The old secret is valid until ${ends}.\n`
        : 'The old secret is no longer valid.\n',
    )
  }
  return onDirectory({ noun: 'client', order: values, terminal, work })
}

const setPassword: Subcommand['run'] = async (args, terminal) => {
  const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: ORDER })
  const [username = ''] = namesOf(NAMES.user, positionals)
  const password = await readPassword(terminal, true)
  const work: Parameters<typeof onDirectory>[0]['work'] = async (directory) => {
    const { ended } = await directory.setPassword(username, password)
    terminal.stdout.write(`${username}: password changed\n${endedLines(username, ended).join('')}`)
  }
  return onDirectory({ noun: 'user', order: values, terminal, work })
}

export const clientCommand = nounCommand('client', {
  'rotate-secret': {
    usage: 'rotate-secret ID [--overlap 1d] [--json]',
    summary: 'Make another secret. The old one stays valid for the overlap (0s: not at all)',
    run: rotateSecret,
  },
})

export const userCommand = nounCommand('user', {
  'set-password': {
    usage: 'set-password USERNAME',
    summary: 'Change the password, typed or piped in. The user must log in again everywhere',
    run: setPassword,
  },
})

export const businessCommand = nounCommand('business')
export const fundCommand = nounCommand('fund')
export const roleCommand = nounCommand('role')
