/** A description as a source of a first configuration. It loads a reader of OpenAPI. */
import type { Terminal } from '../../operate/operation/terminal.ts'
import type { OpenSource, SourcedService, SourceValues } from '../../operate/hooks/first-configuration.ts'
import { openDescription, type OpenDescription } from './described.ts'
import { openText, operationsTable } from './operations-table.ts'
import { notBusinessGiven, placesChosen, placesGiven, valuesOf } from './tenancy.ts'

/** The values of an option that may be given several times. */
const listOf = (value: SourceValues[string]): readonly string[] => (typeof value === 'object' ? value : [])
const givenList = (value: SourceValues[string]): readonly string[] | undefined =>
  typeof value === 'object' ? value : undefined

/** @param shown all, or a line for each kind of them */
function toldText(notes: readonly string[], shown: readonly string[]): string {
  if (notes.length === 0) return ''
  const more = shown.length < notes.length ? ' (--verbose: each of them)' : ''
  return `Not in the file, or yours to decide${more}:\n${shown.join('\n')}\n\n`
}

/** The service as it is described, with the business where the service takes it. */
async function serviceOf(
  open: OpenDescription,
  values: SourceValues,
  asked: Terminal | undefined,
): Promise<SourcedService> {
  const given = givenList(values['business-in'])
  const places =
    given !== undefined ? placesGiven(given) : asked && (await placesChosen(open.places(), asked))
  const { service, notes, kinds, operations } = open.described({
    places,
    fund: givenList(values['fund-parameter']),
    only: listOf(values['only']),
    shared: listOf(values['shared']),
    notBusiness: notBusinessGiven(listOf(values['not-business'])),
  })
  return {
    service,
    notes,
    told: toldText(notes, values['verbose'] === true ? notes : kinds),
    valuesOf: (businesses) => valuesOf(listOf(values['value']), places ?? [], businesses, asked),
    operations: { list: operations, table: operationsTable(operations) },
    open: openText(operations),
  }
}

/** @throws DescriptionError */
export function openDescriptionSource(values: SourceValues, usual: string): OpenSource {
  const open = openDescription(String(values['from']), listOf(values['only']), usual)
  return { upstream: open.upstream, service: (asked) => serviceOf(open, values, asked) }
}
