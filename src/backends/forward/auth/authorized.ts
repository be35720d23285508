import type { Call } from '../../../contracts/backend.ts'
import type { HeaderText } from '../../../http/header-text.ts'
import { Fault } from '../../../kernel/faults.ts'
import { NOT_SENT } from '../../../upstream/reader.ts'
import type { Credentials } from './credentials.ts'

/** Credentials of ours, and their line in the attempt under way. */
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
