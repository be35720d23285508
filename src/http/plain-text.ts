import { Buffer } from 'node:buffer'
import { Fault } from '../kernel/faults.ts'
import { parseContentType } from './media-type.ts'
import { decodeUtf8 } from './read-body.ts'

/**
 * The text of a body in the charset that its type names, UTF-8 or ISO-8859-1; without one it is UTF-8.
 * @throws Fault `body_malformed` for another charset, and for what is not of the one that is named
 */
export function decodeText(bytes: Uint8Array, contentType: string | undefined): string {
  const media = contentType === undefined ? undefined : parseContentType(contentType)
  if (contentType !== undefined && media === undefined)
    throw new Fault('body_malformed', { say: 'Its Content-Type cannot be read.' })
  const charset = media?.parameters.find(({ name }) => name === 'charset')?.value.toLowerCase() ?? 'utf-8'
  if (charset === 'utf-8') return decodeUtf8(bytes)
  // Not by TextDecoder, which takes this name for that of windows-1252.
  if (charset === 'iso-8859-1') return Buffer.from(bytes).toString('latin1')
  throw new Fault('body_malformed', { say: 'It is neither UTF-8 nor ISO-8859-1.' })
}
