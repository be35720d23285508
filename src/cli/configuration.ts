/** `postern configuration check|diff|reload|show`: of a running service (C11.5.4). */
import { countOf } from '../operator/text.ts'
import { EXIT } from '../operator/verb.ts'
import type { FileCheck, FileDifference } from '../watch/status/configuration-orders.ts'
import { accessChangeText } from './access-change-text.ts'
import { callAdminApi } from './admin-commands.ts'
import { reload } from './orders.ts'
import { CONFIGURATION } from './tables/configuration.ts'
import { commandOf } from './verbs.ts'

const asLines = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('')

const restartLines = (paths: readonly string[]): string =>
  asLines(paths.map((path) => `${path}  cannot change while the service runs: restart it`))

function checkText({ fits, problems, warnings, needsRestart }: FileCheck): string {
  const end = fits ? 'a reload would put it in force' : 'a reload would be refused'
  return `${asLines([...problems, ...warnings])}${restartLines(needsRestart)}${end}\n`
}

const STORED = 'The store has too many clients or users: only those of the configuration were compared.\n'

function differenceText(difference: FileDifference): string {
  const { same, changed, changedCount, needsRestart, withStored } = difference
  if (same) return 'the file says what is in force\n'
  const more = changedCount > changed.length ? [`  and ${changedCount - changed.length} more`] : []
  const settings = asLines([
    `${countOf(changedCount, 'setting')} differ${changedCount === 1 ? 's' : ''}`,
    ...changed.map((path) => `  ${path}`),
    ...more,
  ])
  return `${settings}${restartLines(needsRestart)}${accessChangeText(difference)}${withStored ? '' : STORED}`
}

const CHECK_EXITS = {
  of: ({ fits }: FileCheck) => (fits ? EXIT.done : EXIT.refused),
  trouble: EXIT.failed,
}

export const configurationCommand = commandOf(CONFIGURATION, {
  check: ({ values }, terminal) => {
    const call = { method: 'POST', path: '/configuration/check', body: {} } as const
    return callAdminApi(call, values, terminal, checkText, CHECK_EXITS)
  },
  diff: ({ values }, terminal) =>
    callAdminApi({ method: 'GET', path: '/configuration/diff' }, values, terminal, differenceText),
  reload,
  show: ({ values }, terminal) =>
    callAdminApi({ method: 'GET', path: '/configuration' }, { ...values, json: true }, terminal, String),
})
