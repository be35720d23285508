/** Documents of the W3C's XML conformance suite; README.md says which. */
import { readFileSync } from 'node:fs'

export interface W3cDocument {
  /** As the suite calls the test. */
  readonly id: string
  readonly kind: 'well-formed' | 'not-well-formed' | 'no-namespaces'
  readonly bytes: Buffer
}

export const W3C_DOCUMENTS: readonly W3cDocument[] = readFileSync(
  new URL('documents.txt', import.meta.url),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => {
    const [id = '', kind, bytes = ''] = line.split(' ')
    return { id, kind: kind as W3cDocument['kind'], bytes: Buffer.from(bytes, 'base64') }
  })
