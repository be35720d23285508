/** How a command line describes a call. */
import type { Argument, Options } from '../operation/verb.ts'

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

/** The header lines, and the Content-Type of a body of JSON or XML if they name none. */
export function headersWithType(lines: readonly string[], body: Buffer): readonly string[] {
  if (lines.some((line) => /^content-type:/i.test(line))) return lines
  const beginning = body.subarray(0, LONGEST_BEGINNING).toString('latin1')
  const [, type] = BEGINNINGS.find(([each]) => each.test(beginning)) ?? []
  return type === undefined ? lines : [...lines, `Content-Type: ${type}`]
}
