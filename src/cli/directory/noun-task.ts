/** What all commands of the directory have in common: the names of a record, and the work on the directory. */
import type { NounName } from '../../directory/nouns.ts'
import type { DirectoryOrders } from '../../operations/directory-orders.ts'
import { type Terminal, UsageError } from '../command.ts'
import { ORDER, type OrderOptions } from '../order-options.ts'
import { optionNames } from './noun-options.ts'
import { withDirectory } from './open-directory.ts'

export const JSON_TOO = { ...ORDER, json: { type: 'boolean' } } as const

/** How people call the names of a record. */
export const NAMES: Readonly<Record<NounName, readonly string[]>> = {
  client: ['client id'],
  user: ['user name'],
  business: ['business code'],
  fund: ['business code', 'fund code'],
  role: ['role name'],
}

/**
 * The positional arguments.
 *
 * @throws UsageError unless there is one for each
 */
export function namesOf(expected: readonly string[], given: readonly string[]): readonly string[] {
  if (given.length === expected.length) return given
  throw new UsageError(
    expected.length === 0 ? 'expected options only' : `expected one ${expected.join(' and one ')}`,
  )
}

export interface NounTask {
  readonly noun: NounName
  readonly order: OrderOptions
  readonly terminal: Terminal
  readonly work: (directory: DirectoryOrders) => Promise<void>
}

/** Does the work, and gives the exit code. */
export const onDirectory = ({ noun, order, terminal, work }: NounTask): Promise<number> =>
  withDirectory({ order, options: optionNames(noun), work }, terminal)
