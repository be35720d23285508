import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Upgrade } from '../contracts/exchange.ts'

/** Node's pair of request and response. */
export interface Wire {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** Set where the connection may become a websocket. */
  readonly upgrade?: Upgrade
}
