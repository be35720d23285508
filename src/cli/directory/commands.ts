/** `postern client`, `user`, `business`, `fund` and `role`. */
import { parseDuration } from '../../kernel/units.ts'
import { printJson, readPassword, type Terminal } from '../../operator/terminal.ts'
import type { Given } from '../../operator/verb.ts'
import { BUSINESS, CLIENT, FUND, ROLE, USER } from '../tables/directory.ts'
import { commandOf } from '../verbs.ts'
import { nounWorks } from './noun-command.ts'
import { type NounTask, onDirectory } from './noun-task.ts'
import { endedLines, endedRows, secretShower } from './record-text.ts'

const OVERLAP = '1d'

type RotateGiven = Given<(typeof CLIENT.verbs)['rotate-secret']>

function rotateSecret({ positionals, values }: RotateGiven, terminal: Terminal): Promise<number> {
  const [id = ''] = positionals
  const overlap = parseDuration(values.overlap ?? OVERLAP)
  const work: NounTask['work'] = async (directory) => {
    const show = secretShower(values.json === true, terminal)
    const { record } = await directory.rotateSecret(id, overlap, undefined, show)
    const ends = record['oldSecretEndsAt']
    terminal.stderr.write(
      typeof ends === 'string'
        ? `The old secret is valid until ${ends}.\n`
        : 'The old secret is no longer valid.\n',
    )
  }
  return onDirectory({ noun: 'client', order: values, terminal, work })
}

type PasswordGiven = Given<(typeof USER.verbs)['set-password']>

async function setPassword({ positionals, values }: PasswordGiven, terminal: Terminal): Promise<number> {
  const [username = ''] = positionals
  const password = await readPassword(terminal, true)
  const work: NounTask['work'] = async (directory) => {
    const { ended } = await directory.setPassword(username, password)
    if (values.json === true)
      printJson({ username, changed: ['password'], ended: endedRows(ended) }, terminal)
    else terminal.stdout.write(`${username}: password changed\n${endedLines(username, ended).join('')}`)
  }
  return onDirectory({ noun: 'user', order: values, terminal, work })
}

export const clientCommand = commandOf(CLIENT, { ...nounWorks('client'), 'rotate-secret': rotateSecret })
export const userCommand = commandOf(USER, { ...nounWorks('user'), 'set-password': setPassword })
export const businessCommand = commandOf(BUSINESS, nounWorks('business'))
export const fundCommand = commandOf(FUND, nounWorks('fund'))
export const roleCommand = commandOf(ROLE, nounWorks('role'))
