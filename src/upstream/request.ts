import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { HeaderText } from '../http/header-text.ts'
import type { RequestFraming } from './request-bytes.ts'

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: HeaderText
  /** What Host says in place of the target's own. */
  readonly host: string | undefined
  readonly body: Buffer | Readable | undefined
  /** In bytes, of a stream that has one. */
  readonly length: number | undefined
  /** See UpstreamReader. */
  readonly eager: boolean
  /** Over a connection that was not used before, for the attempt after one that failed. */
  readonly fresh: boolean
}

export function framingOf({ body, length }: UpstreamRequest): RequestFraming {
  if (body === undefined) return undefined
  return Buffer.isBuffer(body) ? body.length : (length ?? 'chunked')
}

/** Bytes of a body that go into one write with the head: two buffers at once cost twice as much. */
const JOINED = 15 * 1024

/** Writes a head and its whole body. */
export function writeTogether(socket: Socket, head: string, body: Buffer): void {
  if (body.length <= JOINED) {
    socket.write(head + body.toString('latin1'), 'latin1')
    return
  }
  socket.cork()
  socket.write(head, 'latin1')
  socket.write(body)
  socket.uncork()
}
