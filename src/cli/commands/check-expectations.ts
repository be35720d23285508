/** `postern check --expect FILE`: whether a configuration decides as a file expects (C14.6). */
import { pathText, type Problems } from '../../base/config/problems.ts'
import { countOf, escapedForTerminal, type Terminal } from '../../operate/operation/terminal.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import {
  expectedCall,
  compareRow,
  type Expectation,
  type Mismatch,
  type PartyNames,
  readExpectations,
} from '../../operate/settings/expectations.ts'
import type { Parties } from '../../operate/settings/parties.ts'
import { openExplainer } from '../../serve/start/explainer.ts'
import { hasPeopleElsewhere } from '../../serve/start/settings.ts'
import { readAccess, type ReadAccess } from './read-access.ts'

/** In a sidecar, others know who exists; users that code of the operator's finds cannot be listed. */
function namesOf({ configuration, parties }: ReadAccess): PartyNames {
  const sidecar = isSidecar(configuration)
  const subjects = lazily(() => new Set([...parties.users()].map(({ subject }) => subject)))
  const anyUser = sidecar || hasPeopleElsewhere(configuration.directory)
  return {
    hasClient: (id) => sidecar || parties.clients.has(id),
    isMachine: (id) => parties.clients.get(id)?.kind === 'machine',
    hasUser: (name) => anyUser || parties.findUser(name) !== undefined || subjects().has(name),
    clients: () => parties.clients.keys(),
    users: parties.usernames,
    needScope: sidecar,
  }
}

function lazily<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}

/** The rows that are decided otherwise than expected. */
async function mismatchesOf(
  calls: readonly Expectation[],
  file: string,
  { catalogue }: Parties,
  { env }: Terminal,
): Promise<readonly Mismatch[]> {
  const explainer = await openExplainer(file, { environment: env })
  try {
    const everything = catalogue.values.join(' ')
    const found: (Mismatch | undefined)[] = []
    for (const [row, expectation] of calls.entries())
      found.push(compareRow(row, expectation, await explainer.explain(expectedCall(expectation, everything))))
    return found.filter((mismatch) => mismatch !== undefined)
  } finally {
    await explainer.close()
  }
}

/** A mismatch with its row. */
export interface MismatchRow extends Mismatch {
  readonly file: string
  readonly line: number
  readonly call: string
  readonly client: string | undefined
  readonly user: string | undefined
  readonly target: string | undefined
}

function rowOf(
  mismatch: Mismatch,
  calls: readonly Expectation[],
  problems: Problems,
  file: string,
): MismatchRow {
  const { call = '', client, user, target } = calls[mismatch.row] ?? {}
  const place = problems.locate(['calls', mismatch.row])
  return { file: place?.file ?? file, line: place?.line ?? 0, call, client, user, target, ...mismatch }
}

function rowText({
  file,
  line,
  row,
  call,
  client,
  user,
  target,
  expected,
  actual,
  words,
}: MismatchRow): string {
  const who =
    client === undefined ? 'without a token' : `by ${client}${user === undefined ? '' : ` for ${user}`}`
  const where = target === undefined ? '' : ` at ${target}`
  const text = `${file}:${line}  ${pathText(['calls', row])}  ${call}, ${who}${where}: expected ${expected}, is ${actual}`
  const why = words.split('\n').map((each) => `    ${escapedForTerminal(each)}\n`)
  return `${escapedForTerminal(text)}\n${why.join('')}`
}

export interface Compared {
  /** The problems of the file with the expectations. If it has failed, nothing was compared. */
  readonly problems: Problems
  readonly calls: number
  readonly mismatches: readonly MismatchRow[]
}

/**
 * Compares a configuration that was found fit to be served. Undefined, after the problems were written, if it is so no
 * more.
 */
export async function checkExpectations(
  file: string,
  expect: string,
  terminal: Terminal,
): Promise<Compared | undefined> {
  const read = await readAccess(file, terminal)
  if (read === undefined) return undefined
  const { calls, problems } = readExpectations(expect, terminal.env, namesOf(read))
  if (problems.failed) return { problems, calls: 0, mismatches: [] }
  const found = await mismatchesOf(calls, file, read.parties, terminal)
  const mismatches = found.map((mismatch) => rowOf(mismatch, calls, problems, expect))
  return { problems, calls: calls.length, mismatches }
}

/** The mismatches and their number, for people. */
export function comparedText(expect: string, { calls, mismatches }: Compared): string {
  const met = calls - mismatches.length
  const summary = mismatches.length === 0 ? countOf(met, 'call') : `${met} of ${countOf(calls, 'call')}`
  return `${mismatches.map(rowText).join('')}${expect}: ${summary} decided as expected\n`
}
