import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { Fault } from '../../kernel/faults.ts'

/**
 * The whole of a body that may be at most `limit` bytes. Rejects with Fault `body_too_large` as soon as one byte more
 * arrives, leaving the rest unread, and with Fault `client_gone` if the sender leaves before its end.
 */
export function readBody(stream: Readable, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (stream.destroyed) {
      reject(new Fault('client_gone'))
      return
    }
    const chunks: Buffer[] = []
    let length = 0
    const finish = (settle: () => void): void => {
      stream.off('data', onData).off('end', onEnd).off('error', onGone).off('close', onGone)
      settle()
    }
    const onData = (chunk: Buffer): void => {
      length += chunk.length
      if (length <= limit) chunks.push(chunk)
      else stop()
    }
    const stop = (): void => {
      stream.pause()
      finish(() => reject(new Fault('body_too_large')))
    }
    const onEnd = (): void => finish(() => resolve(join(chunks, length)))
    const onGone = (cause?: unknown): void =>
      finish(() => reject(cause instanceof Fault ? cause : new Fault('client_gone', { cause })))
    stream.on('data', onData).on('end', onEnd).on('error', onGone).on('close', onGone)
  })
}

const join = (chunks: readonly Buffer[], length: number): Buffer =>
  chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length)

interface Handle {
  /** Answers 0, or the error's negative number. */
  getpeername?(out: object): number
}

/**
 * Whether the other side has reset the connection. For a socket that nobody reads: node hears of a reset only when it
 * reads or writes. The kernel forgets the peer of a connection that was reset, and `remoteAddress` is what node remembers,
 * so that the handle is asked; an end (FIN), or a peer that vanished, is not seen. False where nothing is known.
 */
export function isLost(socket: Socket): boolean {
  if (socket.destroyed) return true
  const { _handle: handle } = socket as unknown as { readonly _handle?: Handle | null }
  const found = handle?.getpeername?.({})
  return found !== undefined && found !== 0
}

/** The same bytes, which are not copied. */
export const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength)

const LONGEST = 60

/**
 * A name that the client sent, fit to be repeated in a fault's `say`: cut, and without characters that a log line,
 * an XML document or a terminal would take for anything but text (controls, direction marks, non-characters).
 */
export function printable(name: string): string {
  const characters = Array.from(name.slice(0, 2 * (LONGEST + 1)))
  const cut = characters.length > LONGEST ? [...characters.slice(0, LONGEST - 1), '…'] : characters
  return cut.join('').replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '?')
}

/** The same between double quotes, for use within a sentence. */
export const quoted = (name: string): string => `"${printable(name)}"`

// Strict about what is UTF-8 (no overlong forms, no surrogates), and leaves out one leading BOM (C7.4).
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** A body's text. Throws Fault `body_malformed` if the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes)
  } catch (cause) {
    throw new Fault('body_malformed', { say: 'It is not valid UTF-8.', cause })
  }
}
