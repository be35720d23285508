import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ReplyCarrier } from './carrier.ts'

/** One request: node's pair, and what Fastify's reply to it is used for. */
export interface Wire {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly carrier: ReplyCarrier
}
