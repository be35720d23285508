/** `postern client change` and `postern user change`: planned, recorded, made; again if somebody else was quicker. */
import { Report } from '../config/report.ts'
import type { EndedLoss, PlannedChange } from '../directory/planned-change.ts'
import { ATTEMPTS, changedByOthers } from '../directory/stored-editing.ts'
import type { JsonObject } from '../http/json-value.ts'
import { plainFacts } from '../operations/acts.ts'
import { countOf, EXIT, type Terminal } from './command.ts'
import {
  actOf,
  type DirectoryAct,
  type Editors,
  linesOf,
  type OpenDirectory,
  type OptionNames,
  withDirectory,
} from './edit-directory.ts'
import type { OrderOptions } from './order-options.ts'
import { recorded } from './recorded-act.ts'
import { countOfFamilies } from './terminal.ts'

/** What a change has done. */
export interface Changed {
  readonly keys: readonly string[]
  readonly ended: readonly EndedLoss[]
}

export interface RecordChange {
  readonly order: OrderOptions
  readonly options: OptionNames
  /** The client id or user name. */
  readonly name: string
  readonly act: Omit<DirectoryAct, 'change'>
  readonly plan: (editors: Editors) => Promise<PlannedChange>
  /** Whether the record after it allows no more than the one before. */
  readonly lessened: (before: object, after: object) => boolean
  /** Keys of personal data: only the names of what changed are recorded. */
  readonly personal?: readonly string[]
  /** Tells the operator, in place of the usual text. */
  readonly print?: ((changed: Changed) => void) | undefined
}

/** Changes a record, and gives the exit code. */
export const changeRecord = (change: RecordChange, terminal: Terminal): Promise<number> =>
  withDirectory(change, terminal, async (directory) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const code = await tryToChange(change, directory, terminal)
      if (code !== undefined) return code
    }
    throw changedByOthers(change.name)
  })

/** The exit code; undefined if somebody else has changed the record meanwhile. Each attempt has its records. */
async function tryToChange(
  change: RecordChange,
  { configuration, state, editors, explained }: OpenDirectory,
  terminal: Terminal,
): Promise<number | undefined> {
  const { order, options, lessened, act } = change
  const planned = await change.plan(editors)
  if (planned.keys.length === 0) {
    tell(change, { keys: [], ended: [] }, terminal)
    return EXIT.done
  }
  warn(planned, options, terminal)
  const attempt = { overtaken: false }
  const make = async (): Promise<number> => {
    const ended = await planned.commit()
    attempt.overtaken = ended === undefined
    if (ended === undefined) return EXIT.failed
    tell(change, { keys: planned.keys, ended }, terminal)
    return EXIT.done
  }
  const described = await actOf({ ...act, change: changeFacts(planned, change.personal) }, state)
  const gives = !lessened(planned.records.before, planned.records.after)
  const code = await recorded(
    { configuration, options: order, terminal },
    described,
    () => explained(make),
    gives,
  )
  return attempt.overtaken ? undefined : code
}

function warn({ warnings }: PlannedChange, options: OptionNames, { stderr }: Terminal): void {
  const report = new Report()
  report.problems.push(...warnings)
  for (const line of linesOf(report, options)) stderr.write(`postern: ${line} (warning)\n`)
}

/** Characters of JSON, below what the admin API accepts. */
const MOST_FACTS = 8000

/** Each key that changes, with its value before and after. Long lists are told by what was added and removed. */
export function changeFacts(
  { keys, written }: Pick<PlannedChange, 'keys' | 'written'>,
  personal: readonly string[] = [],
): JsonObject {
  const facts = (describe: (before: unknown, after: unknown) => object): JsonObject =>
    plainFacts(
      Object.fromEntries(
        keys.map((key) => {
          const [before, after] = [written.before[key], written.after[key]]
          return [key, personal.includes(key) ? namesOf(before, after) : describe(before, after)]
        }),
      ),
    )
  const forms = [(before: unknown, after: unknown) => ({ before, after }), difference]
  const fitting = forms.map(facts).find((form) => JSON.stringify(form).length <= MOST_FACTS)
  return fitting ?? { keys: [...keys] }
}

function difference(before: unknown, after: unknown): object {
  if (!Array.isArray(before) || !Array.isArray(after)) return { before, after }
  return {
    added: after.filter((item) => !before.includes(item)),
    removed: before.filter((item) => !after.includes(item)),
  }
}

const isTree = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/** The names of the members that differ: `email`, `address.locality`. */
function namesOf(before: unknown = {}, after: unknown = {}): readonly string[] {
  if (!isTree(before) || !isTree(after)) return []
  return Object.keys({ ...before, ...after }).flatMap((name) => {
    const [one, other] = [before[name], after[name]]
    if (isTree(one) || isTree(other)) return namesOf(one, other).map((inner) => `${name}.${inner}`)
    return one === other ? [] : [name]
  })
}

function tell({ name, options, print }: RecordChange, changed: Changed, { stdout }: Terminal): void {
  if (print) {
    print(changed)
    return
  }
  const { keys, ended } = changed
  const named = keys.map((key) => options[key] ?? key).join(', ')
  stdout.write(keys.length === 0 ? `${name}: as it was\n` : `${name}: changed: ${named}\n`)
  for (const { loss, ended: counts } of ended) stdout.write(`${name}: ended ${endedText(loss, counts)}\n`)
}

function endedText({ tokens }: EndedLoss['loss'], { families, codes }: EndedLoss['ended']): string {
  const where =
    'business' in tokens ? ` at ${tokens.business}` : 'client' in tokens ? ` through ${tokens.client}` : ''
  return `what was issued${where}: ${countOfFamilies(families)}, ${countOf(codes, 'code')}, and the access tokens`
}
