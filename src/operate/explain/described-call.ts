/** Reads the call and its caller, for `explain` and `try`: from a command line, or from a request. */
import { Buffer } from 'node:buffer'
import type { AdminRequest } from '../operation/operation.ts'
import { readBytes, type Terminal } from '../operation/terminal.ts'
import type { Argument, Options, Values } from '../operation/verb.ts'

export const METHOD_AND_PATH = [
  { name: 'METHOD', proposes: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] },
  { name: 'PATH' },
] as const satisfies readonly Argument[]

/** Parts of such a call. */
export const CALL_PARTS = {
  header: {
    type: 'string',
    short: 'H',
    value: '"Name: value"',
    multiple: true,
    help: 'A header line',
  },
  data: {
    type: 'string',
    short: 'd',
    kind: 'at-file',
    value: 'BODY|@FILE',
    help: 'The body. One that begins like JSON or XML gets that Content-Type; for any other give it by -H',
  },
} as const satisfies Options

/** The type of a body that has none, by its beginning: without one, Postern reads each as XML (C4.11). */
const BEGINNINGS: readonly (readonly [beginning: RegExp, type: string])[] = [
  [/^\s*[{[]/, 'application/json'],
  [/^\s*</, 'application/xml'],
]

const LONGEST_BEGINNING = 100

/** A call, as a command line describes it. */
export interface TypedCall {
  readonly method: string
  readonly path: string
  /** Header lines, as `Name: value`. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

export async function readTypedCall(
  [method = '', path = '']: readonly string[],
  { header = [], data }: Values<typeof CALL_PARTS>,
  terminal: Terminal,
): Promise<TypedCall> {
  const body = data === undefined ? Buffer.alloc(0) : await readBytes(data, terminal)
  return { method, path, headers: headersWithType(header, body), body }
}

export const textOrNone = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined

/** The caller that the body of a request claims; all members undefined if it claims none. */
export const callerIn = ({ client, user, target, scope }: AdminRequest['body']) => ({
  client: textOrNone(client),
  user: textOrNone(user),
  target: textOrNone(target),
  scope: textOrNone(scope),
})

/** Name and value of a header line; undefined if it is none. */
export function readHeaderLine(line: string): readonly [name: string, value: string] | undefined {
  const colon = line.indexOf(':')
  return colon <= 0 ? undefined : [line.slice(0, colon), line.slice(colon + 1).trim()]
}

/** The header lines, and the Content-Type of a body of JSON or XML if they name none. */
function headersWithType(lines: readonly string[], body: Buffer): readonly string[] {
  if (lines.some((line) => /^content-type:/i.test(line))) return lines
  const beginning = body.subarray(0, LONGEST_BEGINNING).toString('latin1')
  const [, type] = BEGINNINGS.find(([each]) => each.test(beginning)) ?? []
  return type === undefined ? lines : [...lines, `Content-Type: ${type}`]
}
