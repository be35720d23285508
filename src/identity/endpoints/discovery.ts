import type { Answer } from '../../contracts/exchange.ts'
import { publicDocument } from '../answers.ts'
import type { Arrived } from '../context.ts'
import type { Step } from '../endpoint.ts'

// Short, since both may change by a reload; a new key is published well before it signs (C6.3.4).
const MAX_AGE_SECONDS = 300

/** C6.3.2. One document serves both addresses. */
export const answerMetadata: Step<Arrived, Answer> = (_, { metadata }) =>
  publicDocument(metadata, MAX_AGE_SECONDS)

/** The public keys (C6.3.2, RFC 7517). */
export const answerKeys: Step<Arrived, Answer> = (_, { publicKeys }) =>
  publicDocument(JSON.stringify(publicKeys.jwks()), MAX_AGE_SECONDS)
