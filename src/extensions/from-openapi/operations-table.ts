/** Where the business of each operation is, as `postern init --from` tells it. */
import { countOf, escapedForTerminal, rowLines, shellWord } from '../../operate/operation/terminal.ts'
import type { OperationBusiness } from './describe-service.ts'

/** Operations that are taken although nothing tells the service their business, and nobody says that they have none. */
export const withoutBusiness = (operations: readonly OperationBusiness[]): readonly OperationBusiness[] =>
  operations.filter(
    ({ action, business, shared }) => action !== undefined && business.length === 0 && !shared,
  )

const placeOf = ({ action, business, shared }: OperationBusiness): string => {
  if (action === undefined) return 'left out'
  return shared ? 'shared: it belongs to no business' : business.join(' ')
}

/** Operations without a business come last, under a heading with their number. */
export function operationsTable(operations: readonly OperationBusiness[]): string {
  const open = new Set(withoutBusiness(operations))
  const rows = operations.map((each) =>
    [each.operation, each.action ?? '-', placeOf(each)].map(escapedForTerminal),
  )
  const lines = rowLines(['OPERATION', 'ACTION', 'BUSINESS'], rows)
  const [head = ''] = lines
  const of = (isOpen: boolean): string =>
    lines
      .filter((_line, at) => at > 0 && open.has(operations[at - 1] as OperationBusiness) === isOpen)
      .join('')
  if (open.size === 0) return `${head}${of(false)}`
  const others = of(false) === '' ? '' : `${head}${of(false)}\n`
  const taken = operations.filter(({ action }) => action !== undefined).length
  return `${others}${open.size} of ${countOf(taken, 'operation')} without a business; every business gets the same from them:\n${of(true)}`
}

/** Options that are shown; for more there is the table. */
const MOST_SHOWN = 3

/** The last line of a command that nobody could be asked in; undefined if all operations have a business. */
export function openText(operations: readonly OperationBusiness[]): string | undefined {
  const open = withoutBusiness(operations)
  if (open.length === 0) return undefined
  const shown = open
    .slice(0, MOST_SHOWN)
    .map(({ operation }) => `--shared ${shellWord(escapedForTerminal(operation))}`)
  const [them, they] = open.length === 1 ? ['it', 'it belongs'] : ['them', 'they belong']
  const more = open.length > MOST_SHOWN ? ' …' : ''
  return `postern: exit code 3: ${countOf(open.length, 'operation has', 'operations have')} no business. Say where it is (--business-in), leave ${them} out (--only), or say that ${they} to nobody: ${shown.join(' ')}${more}\n`
}
