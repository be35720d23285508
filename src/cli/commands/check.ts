/** `postern check`: the problems of a configuration, and whether it decides as is expected. */
import { problemRows, type Problems } from '../../base/config/problems.ts'
import { printJson, type Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import { countWorkers } from '../../base/contracts/processes/worker-pool.ts'
import { type Diagnosis, diagnosisLine, fine } from '../../base/kernel/diagnosis.ts'
import type { Compared } from './check-expectations.ts'
import { commandOf, configurationFile, orTellTrouble, writeReport } from '../line/command.ts'
import { StoreError } from '../../state/stores/link/store-error.ts'
import { CHECK } from '../line/tables.ts'
import { SETTINGS } from '../../serve/start/settings.ts'
import { checkConfiguration, loadConfiguration } from '../../operate/settings/check-configuration.ts'

/** `postern check [FILE]`: reports the problems of a file. The exit code is 2 if `serve` would refuse it. */
export const checkCommand = commandOf(CHECK, {
  '': ({ positionals: [named], values }, terminal) => {
    const check = async (): Promise<number> => {
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
      else if (store) for (const finding of store) terminal.stdout.write(diagnosisLine(finding))
      const isWarned = strict && problems.list.length > 0
      const isUnfit = store?.some(({ level }) => level === 'error') === true
      if (problems.failed) return EXIT.refused
      return found.code === EXIT.done && (isWarned || isUnfit) ? EXIT.failed : found.code
    }
    return orTellTrouble([StoreError], check, terminal)
  },
})

/** Findings of an attempt to connect to the store. */
async function tryStore(file: string, terminal: Terminal): Promise<readonly Diagnosis[]> {
  const { configuration } = loadConfiguration(SETTINGS, file, terminal.env)
  const kind = configuration && SETTINGS.added.stores.get(configuration.store.kind)
  if (configuration === undefined || kind === undefined)
    return [fine('The store is of this machine alone: there is nothing to connect to')]
  const workers = countWorkers(configuration.workers)
  // With several workers, the process that supervises them has connections too.
  return kind.diagnose(configuration.store, workers === 1 ? 1 : workers + 1)
}

function writeChecked(file: string, problems: Problems, terminal: Terminal): void {
  writeReport(file, problems, terminal)
  if (!problems.failed) terminal.stdout.write(`${file}: can be served\n`)
}

/** The outcome of the comparison with a file of expectations. */
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
