/**
 * Where the operations of a command are carried out: by the service that runs, or by the same handlers in this process.
 * operator/README.md says which commands have the choice.
 */
import type { TrailLock } from '../audit/lock.ts'
import type { Operation, OperationAnswer, OperationInput } from '../operator/operation.ts'
import { type AdminAccess, sendTo } from '../operator/remote.ts'
import type { Terminal } from '../operator/terminal.ts'
import type { CallOptions } from './call-options.ts'

/** What carries operations out. */
export interface Engine extends AsyncDisposable {
  /** Rejects with OperationError if nobody answers, or the operation is refused. */
  send(operation: Operation, input: OperationInput): Promise<OperationAnswer<unknown>>
}

/** The lock under which a command changes something here, or why its trail cannot be used. */
export type LockHere = { readonly lock: TrailLock } | { readonly unrecorded: string }

/** Nothing was done, and why is written already: exit code 2. */
export class NothingDone extends Error {}

/** The admin API of a running service. */
export const remoteEngine = (access: AdminAccess): Engine => ({
  send: async (operation, input) => {
    const response = await sendTo(access, operation, input)
    const tag = response.headers.get('etag')?.replaceAll('"', '')
    return { body: await response.json(), tag }
  },
  [Symbol.asyncDispose]: () => Promise.resolve(),
})

/** An operation that a command is for, how it was called, and by whom. */
export interface Purpose {
  readonly operation: Operation
  readonly options: CallOptions
  readonly terminal: Terminal
}
