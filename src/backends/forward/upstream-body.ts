import type { Readable } from 'node:stream'
import type { BackendError } from '../../contracts/backend.ts'
import { errorsOf } from '../../http/envelope.ts'
import { parseJson } from '../../http/json.ts'
import type { JsonValue } from '../../http/json-value.ts'
import { ENVELOPE_SCHEMA, readXml } from '../../http/xml-read.ts'

type Format = 'json' | 'xml'

const PARSERS: Readonly<Record<Format, (bytes: Buffer) => JsonValue>> = {
  json: (bytes) => parseJson(bytes),
  xml: (bytes) => readXml(bytes, ENVELOPE_SCHEMA),
}

/**
 * The errors of an upstream's own envelope (C2.1, C8.4): undefined unless every one has both members as text, and
 * there is at least one. Of `Data` it counts only that it is there; it becomes `{}`.
 */
export function envelopeErrors(body: Buffer | Readable, format: Format): readonly BackendError[] | undefined {
  if (!Buffer.isBuffer(body) || body.length === 0) return undefined
  try {
    return errorsOf(PARSERS[format](body))
  } catch {
    return undefined
  }
}

const TYPES: Readonly<Record<Format, RegExp>> = {
  json: /^(?:application|text)\/(?:json|[\w.-]+\+json)\s*(?:;|$)/i,
  xml: /^(?:application|text)\/(?:xml|[\w.-]+\+xml)\s*(?:;|$)/i,
}

/** Whether an enveloped action's body is what the backend's format says: a login page is not. None declared: it may be. */
export const isOfFormat = (contentType: string | undefined, format: Format): boolean =>
  contentType === undefined || TYPES[format].test(contentType.trim())
