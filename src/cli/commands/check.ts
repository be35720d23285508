/** The commands that read configurations and change nothing. */
import { problemRows, type Problems } from '../../base/config/problems.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { accessChangeText } from '../../operate/service/configuration.ts'
import { printJson, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import { countWorkers } from '../../base/contracts/processes/worker-pool.ts'
import { type AccessChange, accessOf, compareAccess } from '../../operate/settings/access.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import type { Finding } from '../../state/stores/postgres/diagnose.ts'
import type { Compared } from './check-expectations.ts'
import { commandOf, configurationFile, writeReport } from '../line/command.ts'
import { orStoreTrouble, readStoredPeople } from './read-access.ts'
import { CHECK, DIFF } from '../line/tables.ts'
import { SETTINGS } from '../../serve/start/settings.ts'
import { checkConfiguration, loadConfiguration } from '../../operate/settings/check-configuration.ts'

/** `postern check [FILE]`: reports the problems of a file. The exit code is 2 if `serve` would refuse it. */
export const checkCommand = commandOf(CHECK, {
  '': ({ positionals: [named], values }, terminal) =>
    orStoreTrouble(async () => {
      const file = configurationFile(named, terminal)
      const { connect = false, expect, json = false, strict = false } = values
      const problems = await checkConfiguration(SETTINGS, file, terminal.env, strict)
      if (!json) writeChecked(file, problems, terminal)
      const found =
        expect === undefined || problems.failed
          ? NOTHING_EXPECTED
          : await checkExpected(file, expect, json, terminal)
      const store = connect && !problems.failed ? await tryStore(file, terminal) : undefined
      if (json)
        printJson({ ...checkedJson(file, problems, found.compared), ...(store && { store }) }, terminal)
      else if (store) for (const { level, text } of store) terminal.stdout.write(`${MARK[level]}${text}\n`)
      const isWarned = strict && problems.list.length > 0
      const isUnfit = store?.some(({ level }) => level === 'error') === true
      if (problems.failed) return EXIT.refused
      return found.code === EXIT.done && (isWarned || isUnfit) ? EXIT.failed : found.code
    }, terminal),
})

const MARK = { fine: '  ok ', warning: 'WARN ', error: 'FAIL ' } as const

/** What connecting to the store shows. */
async function tryStore(file: string, terminal: Terminal): Promise<readonly Finding[]> {
  const { configuration } = loadConfiguration(SETTINGS, file, terminal.env)
  if (configuration?.store.kind !== 'postgres')
    return [{ level: 'fine', text: 'The store is of this machine alone: there is nothing to connect to' }]
  const { diagnose } = await import('../../state/stores/postgres/diagnose.ts')
  const workers = countWorkers(configuration.workers)
  // Of several workers, the process that supervises them has connections too.
  return diagnose(configuration.store, workers === 1 ? 1 : workers + 1)
}

function writeChecked(file: string, problems: Problems, terminal: Terminal): void {
  writeReport(file, problems, terminal)
  if (!problems.failed) terminal.stdout.write(`${file}: can be served\n`)
}

/** What became of the comparison with a file of expectations. */
interface Expected {
  readonly code: number
  /** Absent if nothing was compared. */
  readonly compared?: Compared | undefined
}

const NOTHING_EXPECTED: Expected = { code: EXIT.done }

/** Imported only where it is asked for: it loads what serves. */
async function checkExpected(
  file: string,
  expect: string,
  json: boolean,
  terminal: Terminal,
): Promise<Expected> {
  const { checkExpectations, comparedText } = await import('./check-expectations.ts')
  const compared = await checkExpectations(file, expect, terminal)
  if (compared === undefined) return { code: EXIT.refused }
  const { problems, mismatches } = compared
  if (!json) writeReport(expect, problems, terminal)
  if (problems.failed) return { code: EXIT.refused, compared }
  if (!json) terminal.stdout.write(comparedText(expect, compared))
  return { code: mismatches.length === 0 ? EXIT.done : EXIT.failed, compared }
}

/** The answer for programs. Problems of the expectations look as those of the configuration do, with their file. */
const checkedJson = (file: string, problems: Problems, compared: Compared | undefined) => ({
  file,
  canBeServed: !problems.failed,
  problems: [problems, ...(compared === undefined ? [] : [compared.problems])].flatMap(problemRows),
  ...(compared?.problems.failed === false && { calls: compared.calls, mismatches: compared.mismatches }),
})

interface Read {
  readonly file: string
  readonly configuration: Configuration
  readonly problems: Problems
}

function read(file: string, terminal: Terminal): Read | undefined {
  const { configuration, problems } = loadConfiguration(SETTINGS, file, terminal.env)
  if (configuration !== undefined) return { file, configuration, problems }
  writeReport(file, problems, terminal)
  return undefined
}

/** Undefined, after the problems were written, if the scopes or the directory of one have problems. */
async function compare(before: Read, after: Read, terminal: Terminal): Promise<AccessChange | undefined> {
  // Both are combined with the same records, because only the configurations are compared.
  const both = [before.configuration, after.configuration]
  const none = 'Only clients and users of the configurations are compared.'
  const stored = await readStoredPeople(both, none, terminal)
  const parts = { environment: terminal.env, stored, clock: systemClock }
  const access = [before, after].map(({ configuration, problems }) =>
    accessOf(configuration, parts, problems),
  )
  const [old = [], next = []] = await Promise.all(access)
  const refused = [before, after].filter(({ problems }) => problems.failed)
  for (const { file, problems } of refused) writeReport(file, problems, terminal)
  return refused.length > 0 ? undefined : compareAccess(old, next)
}

/** `postern diff OLD NEW`: shows who gains and who loses access to which actions. */
export const diffCommand = commandOf(DIFF, {
  '': ({ positionals: [old = '', next = ''], values }, terminal) => {
    const before = read(old, terminal)
    const after = read(next, terminal)
    if (before === undefined || after === undefined) return EXIT.refused
    return orStoreTrouble(async () => {
      const changes = await compare(before, after, terminal)
      if (changes === undefined) return EXIT.refused
      const { gained, lost } = changes
      if (values.json === true) printJson({ gained, lost }, terminal)
      else terminal.stdout.write(accessChangeText({ gained, lost }))
      return EXIT.done
    }, terminal)
  },
})
