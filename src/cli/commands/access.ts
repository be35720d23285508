/** `postern access`: who may call what; with METHOD and PATH, the scopes of a call; with `--against`, what changed (C14.5). */
import { csvLine } from '../../operate/operation/csv.ts'
import { printAll, rowLines } from '../../operate/operation/terminal.ts'
import { EXIT, type Given, UsageError } from '../../operate/operation/verb.ts'
import {
  accessMatrix,
  type MatrixFilter,
  type MatrixSection,
  type OperationAccess,
} from '../../operate/settings/access-matrix.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import type { Parties } from '../../operate/settings/parties.ts'
import { commandOf, configurationFile } from '../line/command.ts'
import { foundOrRefused, orTellUnknown, readAccess, UnknownName } from './read-access.ts'
import { ACCESS } from '../line/tables.ts'

interface Named {
  readonly client?: string | undefined
  readonly user?: string | undefined
  readonly business?: string | undefined
}

function filterOf({ client, user, business }: Named, parties: Parties): MatrixFilter {
  const { clients, directory } = parties
  if (business !== undefined)
    foundOrRefused('business', business, directory.businesses.get(business), directory.businesses.keys())
  return {
    business,
    client:
      client === undefined
        ? undefined
        : foundOrRefused('client', client, clients.get(client), clients.keys()),
    user:
      user === undefined
        ? undefined
        : foundOrRefused('user', user, parties.findUser(user), parties.usernames()),
  }
}

const missingText = ({ missing }: OperationAccess): string => missing.map((each) => each.text).join('; ')

const roleOf = ({ user, business }: MatrixSection): string | undefined => user?.access.get(business)?.role

function titleOf(section: MatrixSection): string {
  const { client, user, business } = section
  const role = roleOf(section)
  const names = [
    ...(client === undefined ? [] : [`client ${client.id}`]),
    ...(user === undefined ? [] : [`user ${user.username}${role === undefined ? '' : ` (${role})`}`]),
  ]
  return `${names.join(', ')} at ${business}\n`
}

const HEADS = ['  LEVEL', 'ACTION', 'METHOD', 'VERSIONS', 'ACCESS']

const ACCESS_TEXT = { yes: 'yes', 'report-only': 'yes: the area refuses nothing (report-only)' } as const

function* asText(sections: Iterable<MatrixSection>): Generator<string> {
  let first = true
  for (const section of sections) {
    const rows = section.operations.map((each) => {
      const { level, area, action, method, versions } = each.operation
      const access = each.access === 'no' ? `no: ${missingText(each)}` : ACCESS_TEXT[each.access]
      return [`  ${level}`, `${area}/${action}`, method, versions.join(' '), access]
    })
    yield `${first ? '' : '\n'}${titleOf(section)}${rowLines(HEADS, rows).join('')}`
    first = false
  }
  if (first) yield 'nobody has access to any business\n'
}

/** A row as it is written for programs. */
function flat(section: MatrixSection, each: OperationAccess) {
  const { client, user, business } = section
  const { level, area, action, method, versions } = each.operation
  return {
    client: client?.id,
    user: user?.username,
    role: roleOf(section),
    business,
    level,
    area,
    action,
    method,
    versions,
    access: each.access,
    missing: each.missing,
  }
}

function* asJson(sections: Iterable<MatrixSection>): Generator<string> {
  let before = '[\n'
  for (const section of sections)
    for (const each of section.operations) {
      yield `${before}${JSON.stringify(flat(section, each))}`
      before = ',\n'
    }
  yield before === '[\n' ? '[]\n' : '\n]\n'
}

const COLUMNS = ['client', 'user', 'role', 'business', 'level', 'area', 'action', 'method'] as const

function* asCsv(sections: Iterable<MatrixSection>): Generator<string> {
  yield csvLine([...COLUMNS, 'versions', 'access', 'missing'])
  for (const section of sections)
    for (const each of section.operations) {
      const row = flat(section, each)
      const cells = COLUMNS.map((column) => row[column])
      yield csvLine([...cells, row.versions.join(' '), row.access, missingText(each)])
    }
}

/** Options that only the whole table takes. */
const OF_ALL = ['client', 'user', 'business', 'csv'] as const

/** @throws UsageError */
function checkTogether(
  positionals: readonly string[],
  values: Given<(typeof ACCESS.verbs)['']>['values'],
): void {
  if (positionals.length === 1)
    throw new UsageError(
      values.against === undefined
        ? 'expected METHOD and PATH, got 1 argument'
        : 'expected options only, got an argument; the new configuration is named by --config',
    )
  const asked = [
    ...(positionals.length > 0 ? ['METHOD and PATH'] : []),
    ...(values.against === undefined ? [] : ['--against']),
  ]
  const ofAll = OF_ALL.filter((name) => values[name] !== undefined).map((name) => `--${name}`)
  const [first, second] = asked.length > 0 ? [...asked, ...ofAll] : []
  if (first !== undefined && second !== undefined)
    throw new UsageError(`expected ${first} or ${second}, not both`)
  if (values.csv === true && values.json === true) throw new UsageError('expected --csv or --json, not both')
}

export const accessCommand = commandOf(ACCESS, {
  '': async ({ positionals, values }, terminal) => {
    checkTogether(positionals, values)
    const file = configurationFile(values.config, terminal)
    const [method, path] = positionals
    const { against, json = false } = values
    if (against !== undefined)
      return (await import('./compare-access.ts')).showAccessChange(
        { old: against, next: file, json },
        terminal,
      )
    if (method !== undefined && path !== undefined)
      return (await import('./needed-scopes.ts')).showNeededScopes(
        method,
        path,
        { config: file, json },
        terminal,
      )
    return orTellUnknown(async () => {
      const read = await readAccess(file, terminal)
      if (read === undefined) return EXIT.refused
      if (isSidecar(read.configuration)) throw new UnknownName(SIDECAR)
      const sections = accessMatrix(read.parties, filterOf(values, read.parties))
      const write = values.csv === true ? asCsv : json ? asJson : asText
      await printAll(write(sections), terminal)
      return EXIT.done
    }, terminal)
  },
})

const SIDECAR =
  'a sidecar has no clients and users of its own: its issuers say who has which scope. `postern access METHOD PATH` tells which scopes a call needs'
