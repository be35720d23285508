/** What all commands of the directory have in common: the work on the directory. */
import type { NounName } from '../../directory/nouns.ts'
import type { DirectoryOrders } from '../../operator/directory-orders.ts'
import type { Terminal } from '../../operator/terminal.ts'
import type { CallOptions } from '../call-options.ts'
import { optionNames } from './noun-options.ts'
import { withDirectory } from './open-directory.ts'

export interface NounTask {
  readonly noun: NounName
  readonly order: CallOptions
  readonly terminal: Terminal
  readonly work: (directory: DirectoryOrders) => Promise<void>
}

/** Does the work, and gives the exit code. */
export const onDirectory = ({ noun, order, terminal, work }: NounTask): Promise<number> =>
  withDirectory({ order, options: optionNames(noun), work }, terminal)
