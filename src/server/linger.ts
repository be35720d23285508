import type { Socket } from 'node:net'

const CHECK_MS = 50
const CHECKS = 20
/** How much a client may go on sending after we have answered and ended; how long: `CHECKS` times `CHECK_MS`. */
const LINGER_BYTES = 4 * 1024 * 1024

/**
 * Ends a connection on which the client may still be sending, so that it can read the answer first. Closing at once
 * would make the kernel send a reset for the bytes that nobody reads, and a reset discards what the client has not
 * read yet (RFC 9112 §9.6). So: end our side, throw away what still comes, for a bounded time and amount.
 *
 * @param last bytes to send before the end
 */
export function lingerThenClose(socket: Socket, last?: Buffer): void {
  if (last === undefined) socket.end()
  else socket.end(last)
  const bound = socket.bytesRead + LINGER_BYTES
  let checks = 0
  const timer = setInterval(() => {
    checks += 1
    if (checks >= CHECKS || socket.bytesRead > bound) socket.destroy()
  }, CHECK_MS)
  socket.once('close', () => {
    clearInterval(timer)
  })
  socket.resume()
}
