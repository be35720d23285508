/**
 * Where the operations of a command are carried out: by the service that runs, or by the same handlers in this process.
 * operate/README.md says which commands have the choice.
 */
import type { TrailLock } from '../../operate/trail/lock.ts'
import { OperationError } from '../../operate/operation/errors.ts'
import type { AdminOperation, OperationAnswer, OperationInput } from '../../operate/operation/operation.ts'
import { type AdminAccess, BROKEN_OFF, LINES, linesOf, sendTo } from '../../operate/operation/remote.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import type { CallOptions } from '../line/call-options.ts'

/** Carries operations out. */
export interface Engine extends AsyncDisposable {
  /** The folder of the trail, if it is known and on this machine. */
  readonly trailFolder?: string | undefined
  /** Rejects with OperationError if nobody answers, or the operation is refused. The body of a stream is its lines. */
  send(operation: AdminOperation, input: OperationInput): Promise<OperationAnswer<unknown>>
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
    const isStream = response.headers.get('content-type')?.startsWith(LINES) === true
    return {
      body: isStream ? linesOf(response.body as ReadableStream<Uint8Array>) : await jsonOf(response, access),
      tag,
    }
  },
  [Symbol.asyncDispose]: () => Promise.resolve(),
})

const jsonOf = (response: Response, { address }: AdminAccess): Promise<unknown> =>
  response.json().catch((cause: unknown) => {
    // A connection that ended too early is no answer of somebody else.
    if (!(cause instanceof SyntaxError)) throw new OperationError(BROKEN_OFF, { cause })
    throw new OperationError(`what answers at ${address} is no admin listener of Postern`)
  })

/** An operation that a command is for, how it was called, and by whom. */
export interface CommandPurpose {
  readonly operation: AdminOperation
  readonly options: CallOptions
  readonly terminal: Terminal
}
