import type { Socket } from 'node:net'

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
