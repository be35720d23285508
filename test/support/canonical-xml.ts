/** An independent reader of XML: Python's, in one process for all documents of a test. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(new URL('canonical-xml.py', import.meta.url))

/** The canonical text of each document, without comments and instructions; undefined for what it takes for no XML. */
export function canonicalXml(documents: readonly (string | Uint8Array)[]): readonly (string | undefined)[] {
  const input = JSON.stringify(documents.map((each) => Buffer.from(each).toString('base64')))
  const { status, stdout, stderr } = spawnSync('python3', [PROGRAM], {
    input,
    encoding: 'utf8',
    maxBuffer: 256 * 1024 ** 2,
  })
  if (status !== 0) throw new Error(stderr)
  return (JSON.parse(stdout) as (string | null)[]).map((text) => text ?? undefined)
}
