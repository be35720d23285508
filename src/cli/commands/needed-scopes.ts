/** `postern access METHOD PATH`: which scopes a call needs, and who has them (C14.5). */
import { didYouMean } from '../../base/config/problem-text.ts'
import { Problems } from '../../base/config/problems.ts'
import { compileAuthorities, parseRequestTarget } from '../../base/http/head/request-target.ts'
import { Fault } from '../../base/kernel/faults.ts'
import { splitListenAddress } from '../../base/kernel/listen-address.ts'
import { printJson, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import { serviceUrls } from '../../gateway/server/schema.ts'
import {
  type ClientWithScope,
  type NeededValue,
  operationAt,
  scopeNeeds,
  type ScopeNeeds,
} from '../../operate/settings/access-matrix.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { compileActionsOf, type ListedOperation, type Parties } from '../../operate/settings/parties.ts'
import { SETTINGS } from '../../serve/start/settings.ts'
import { orTellUnknown, readAccess, type ReadAccess, UnknownName } from './read-access.ts'

const nameOf = ({ area, action }: ListedOperation): string => `${area}/${action}`

/** The operations of an `area/action` as `postern access` lists it, for users who know no path; it may be at both levels. */
function namedOperations(method: string, name: string, { operations }: Parties): readonly ListedOperation[] {
  const named = method === 'HEAD' ? 'GET' : method
  const same = operations.filter((each) => nameOf(each) === name)
  if (same.length === 0) throw new UnknownName(`there is no action "${name}"${hintOf(name, operations)}`)
  const found = same.filter((each) => each.method === named)
  if (found.length > 0) return found
  throw new UnknownName(notOffered(same.map((each) => each.method)))
}

const notOffered = (methods: readonly string[]): string =>
  `the action does not offer this method; it offers ${[...new Set(methods)].join(', ')}`

function hintOf(name: string, operations: readonly ListedOperation[]): string {
  const hint = didYouMean(name, new Set(operations.map(nameOf)))
  return hint === undefined ? '' : ` — ${hint}`
}

function authoritiesOf({ server }: Configuration): ReturnType<typeof compileAuthorities> {
  const { authUrl, baseUrl } = serviceUrls(server, splitListenAddress(server.listen).port)
  return compileAuthorities([authUrl, baseUrl])
}

/** The words for what keeps a path from meaning an action. */
function toldOf({ code, facts, publicText }: Fault): string {
  if (code === 'method_not_allowed') return notOffered(facts.allow ?? [])
  if (code === 'unknown_action') return 'no action is at this path: `postern access` lists them all'
  return publicText
}

function operationsAt(
  method: string,
  path: string,
  { configuration, parties }: ReadAccess,
): readonly ListedOperation[] {
  if (!path.startsWith('/') && !path.includes('://')) return namedOperations(method, path, parties)
  const problems = new Problems()
  const actions = compileActionsOf(
    configuration,
    { catalogue: parties.catalogue, upgrade: SETTINGS.added.backends.upgrade },
    problems,
  )
  if (problems.failed) throw new UnknownName('the actions have problems: `postern check` tells which')
  try {
    const target = parseRequestTarget(path, authoritiesOf(configuration))
    const found = operationAt(method, target, actions, parties)
    return found === undefined ? [] : [found]
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown
    throw new UnknownName(toldOf(thrown))
  }
}

const valueLine = ({ value, impliedBy }: NeededValue): string =>
  `    ${value}${impliedBy.length === 0 ? '' : `   (implied by ${impliedBy.join(', ')})`}\n`

const groupText = (group: readonly NeededValue[]): string =>
  `${group.length > 1 ? 'one of' : 'the scope'}\n${group.map(valueLine).join('')}`

function clientLine({ client, by, missing }: ClientWithScope): string {
  const places = client.businesses.length === 0 ? '' : ` at ${client.businesses.join(', ')}`
  const but = missing.length === 0 ? '' : `, but ${missing.map(({ text }) => text).join('; ')}`
  return `    ${client.id}${places}, by ${by.join(' ')}${but}\n`
}

function needsText({ operation, groups, clients, roles }: ScopeNeeds): string {
  const { level, method, versions, reportOnly } = operation
  const version = `version${versions.length > 1 ? 's' : ''} ${versions.join(', ')}`
  const free = reportOnly
    ? '  its area is report-only: it refuses nothing, and reports what lacks this\n'
    : ''
  const who = clients.length === 0 ? '    none\n' : clients.map(clientLine).join('')
  return [
    `${method} ${nameOf(operation)} (${level}), ${version}\n${free}`,
    `  a token needs ${groups.map(groupText).join('  and ')}`,
    `  clients that may have it\n${who}`,
    // An action that only the person's consent opens needs no role.
    level === 'user' ? '' : `  roles that have it: ${roles.length === 0 ? 'none' : roles.join(', ')}\n`,
  ].join('')
}

function plain({ operation, groups, clients, roles }: ScopeNeeds) {
  const { level, area, action, method, versions, reportOnly } = operation
  return {
    level,
    area,
    action,
    method,
    versions,
    reportOnly,
    groups,
    roles,
    clients: clients.map(({ client: { id, businesses }, by, missing }) => ({ id, businesses, by, missing })),
  }
}

/** The promise gives the exit code. @param path of a call, or `area/action` */
export const showNeededScopes = (
  method: string,
  path: string,
  { config, json }: { readonly config: string; readonly json: boolean },
  terminal: Terminal,
): Promise<number> =>
  orTellUnknown(async () => {
    const read = await readAccess(config, terminal)
    if (read === undefined) return EXIT.refused
    const operations = operationsAt(method, path, read)
    const needs = operations.map((operation) => scopeNeeds(operation, read.parties))
    if (json) printJson(needs.map(plain), terminal)
    else terminal.stdout.write(needs.map(needsText).join('\n'))
    return EXIT.done
  }, terminal)
