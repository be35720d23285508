/** `postern client change`. */
import { parseArgs } from 'node:util'
import { LESSENED } from '../settings/takes-away.ts'
import { changeRecord } from './change-record.ts'
import { CLIENT_ARGUMENTS, CLIENT_OPTIONS, givenKeys } from './client-options.ts'
import { singleName, type Subcommand, UsageError } from './command.ts'
import { printJson } from './terminal.ts'

/** An empty text removes a value, or empties a list. */
const withoutEmpty = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.filter((item) => item !== '')
  return value === '' ? undefined : value
}

export const changeClient: Subcommand['run'] = (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: CLIENT_ARGUMENTS,
  })
  const id = singleName(positionals, 'client id')
  const given = Object.entries(givenKeys(values)).map(([key, value]) => [key, withoutEmpty(value)] as const)
  if (given.length === 0) throw new UsageError('expected an option that says what changes')
  const print: Parameters<typeof changeRecord>[0]['print'] = ({ keys, ended }) =>
    printJson(
      { client_id: id, changed: keys, ended: ended.map(({ loss, ended }) => ({ ...loss.tokens, ...ended })) },
      terminal,
    )
  return changeRecord(
    {
      ...{ order: values, options: CLIENT_OPTIONS, name: id, lessened: LESSENED.client },
      act: { event: 'client.changed', client: id },
      plan: ({ clients }) => clients.plan(id, () => Object.fromEntries(given)),
      ...(values.json === true && { print }),
    },
    terminal,
  )
}
