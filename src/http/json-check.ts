import { Buffer, isUtf8 } from 'node:buffer'
import { isEnvelope } from './envelope.ts'
import type { JsonValue } from './json.ts'
import { JsonScan, NotJson } from './json-scan.ts'

export { NotJson } from './json-scan.ts'

/**
 * Whether bytes are one JSON document in UTF-8 (RFC 8259), found out piece by piece as they pass, in constant memory. With
 * `envelope` whether it is an envelope (C2.1) too. The last of a repeated member counts, as in JSON.parse. No byte order
 * mark.
 */
export class JsonCheck {
  readonly #scan: JsonScan

  constructor(envelope = false) {
    this.#scan = new JsonScan(envelope)
  }

  /** @throws NotJson as soon as it is known */
  write(bytes: Uint8Array): void {
    this.#scan.write(bytes)
  }

  /** @throws NotJson if the document is not whole */
  end(): void {
    this.#scan.end()
  }
}

/** The same for a document that is whole. @throws NotJson */
export function checkJson(bytes: Uint8Array, envelope = false): void {
  if (!isUtf8(bytes)) throw new NotJson('it is not UTF-8')
  const value = parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString())
  if (envelope && !isEnvelope(value)) throw new NotJson('it is no envelope')
}

function parse(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch (cause) {
    throw new NotJson('it does not parse', { cause })
  }
}
