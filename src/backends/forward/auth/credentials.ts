import type { Call } from '../../../contracts/backend.ts'
import { headerLine, type HeaderText } from '../../../http/header-text.ts'
import { Fault } from '../../../kernel/faults.ts'
import { NOT_SENT } from '../../../upstream/reader.ts'

/** Postern's credentials at an upstream (C8.7). They go to its targets only, and to no other origin. */
export interface Credentials {
  /** The header that they stand in, in lower case. A client's header of that name is dropped. */
  readonly name: string
  /** Whether there may be others once the upstream has refused these. */
  readonly renewable: boolean
  /** The header's line; a promise where a token has to be fetched first. Rejects with Fault `upstream_token_unavailable`. */
  line(): HeaderText | Promise<HeaderText>
  /** The upstream answered 401 to a call with this line. Answers whether the call may be sent again, with another one. */
  refused(line: HeaderText): boolean
}

/** @throws Fault `internal` for a value that is no header value */
export function fixedCredentials(name: string, value: string): Credentials {
  const line = headerLine(name, value)
  return { name, renewable: false, line: () => line, refused: () => false }
}

export interface Authorized {
  readonly credentials: Credentials
  readonly line: HeaderText
}

/** For a call; a promise where a token has to be fetched first. Rejects with Fault `client_gone` if its client leaves. */
export function authorize(call: Call, credentials: Credentials): Authorized | Promise<Authorized> {
  const line = credentials.line()
  if (!(line instanceof Promise)) return { credentials, line }
  const { promise, resolve, reject } = Promise.withResolvers<Authorized>()
  call.onCancel(() => reject(gone()))
  line.then((fetched) => resolve({ credentials, line: fetched }), reject)
  return promise
}

const gone = (): Fault =>
  new Fault('client_gone', {
    detail: 'the client left while a token for the upstream was awaited',
    upstream: NOT_SENT,
  })
