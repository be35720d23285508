import { Buffer } from 'node:buffer'
import type { Call } from '../../../../base/contracts/calls/backend.ts'
import type { Template } from '../../../../base/contracts/calls/templates.ts'
import { headerLine, type HeaderText } from '../../../../base/http/head/header-text.ts'
import { Fault } from '../../../../base/kernel/faults.ts'
import { NOT_SENT } from '../../../upstream/reader.ts'
import { placeholdersIn } from '../../templates/parse.ts'
import { type CertainTemplate, compileFreeText, type Filled } from '../../templates/places.ts'
import { unsendable } from '../../templates/sources.ts'

/** Postern's credentials at an upstream (C8.7). They go to its targets only, and to no other origin. */
export interface Credentials {
  /** The name of their header, in lower case. A client's header of that name is dropped. */
  readonly name: string
  /** Whether there may be others once the upstream has refused these. */
  readonly renewable: boolean
  /** The parts of them that differ from call to call. */
  readonly templates: readonly CertainTemplate[]
  /** The credentials that a call uses in place of these. Absent: it uses these. @throws Fault as `line` */
  readonly ofCall?: (call: Call) => Credentials
  /**
   * The header's line; a promise where a token has to be fetched first. Rejects with Fault `upstream_token_unavailable`.
   * @throws Fault `business_value_missing`, `unsendable_value`, `unsendable_argument`
   */
  line(call: Call): HeaderText | Promise<HeaderText>
  /** The upstream answered 401 to a call with this line. Answers whether the call may be sent again, with another one. */
  refused(line: HeaderText): boolean
}

/** @throws Fault `internal` for a value that is no header value */
export function fixedCredentials(name: string, value: string): Credentials {
  const line = headerLine(name, value)
  return { name, renewable: false, templates: [], line: () => line, refused: () => false }
}

/** @param value makes the header's value for a call */
export const filledCredentials = (
  name: string,
  templates: readonly CertainTemplate[],
  value: (call: Call) => string,
): Credentials => ({
  name,
  renewable: false,
  templates,
  line: (call) => headerLine(name, value(call)),
  refused: () => false,
})

/** @returns what is wrong with a text, as a verb and what follows */
type TextCheck = (text: string) => string | undefined

/** A text of credentials, which is judged for each call. A client's own value is its mistake: 400. */
export function compileChecked(template: Template, check: TextCheck): Filled {
  const text = compileFreeText(template)
  const [blamed] = placeholdersIn(template)
  if (typeof text === 'string' || blamed === undefined) return text
  return (call) => {
    const filled = text(call)
    const why = check(filled)
    if (why !== undefined) throw unsendable(blamed, why)
    return filled
  }
}

/** The reason why a text cannot be a header value: a character that no header can hold, or a blank that receivers trim. */
export function checkHeaderText(text: string): string | undefined {
  if (text === '') return 'is empty'
  if (/[\x00-\x08\x0a-\x1f\x7f]/.test(text)) return 'holds a control character, which a header cannot'
  if (/^[ \t]|[ \t]$/.test(text)) return 'begins or ends with a blank, which receivers take away'
  return text.isWellFormed() ? undefined : 'is no Unicode text'
}

/** Headers are sent in latin-1: other characters are sent as the bytes of their UTF-8 (RFC 9110 §5.5). */
export const asHeaderText = (text: string): string =>
  /^[\t -~]*$/.test(text) ? text : Buffer.from(text).toString('latin1')

export interface Authorized {
  readonly credentials: Credentials
  readonly line: HeaderText
}

/**
 * The credentials for a call; a promise where a token has to be fetched first. Rejects with Fault `client_gone` if its client
 * leaves.
 */
export function credentialsFor(call: Call, given: Credentials): Authorized | Promise<Authorized> {
  const credentials = given.ofCall === undefined ? given : given.ofCall(call)
  const line = credentials.line(call)
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
