import { createServer, type Socket } from 'node:net'

/**
 * An upstream that sends bytes behind its answers, in a process of its own, so that its delays are those of another
 * machine's. Each request says in its path what it wants: `/late/<kind>/<delay>/<number>`. The answer to `good` holds
 * the number; what comes behind the other kinds' answers is a whole answer that says FORGED.
 */

const FORGED = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n["FORGED"]'
const JSON_TYPE = 'Content-Type: application/json\r\n'

const plain = (number: string, more = ''): string =>
  `HTTP/1.1 200 OK\r\n${JSON_TYPE}${more}Content-Length: ${number.length + 2}\r\n\r\n[${number}]`

/** What is sent at once, and what comes behind it. Every kind ends where the first part does. */
const KINDS: Readonly<Record<string, (number: string) => readonly [string, string]>> = {
  good: (number) => [plain(number), ''],
  '304': () => ['HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', FORGED],
  '304-length': () => [`HTTP/1.1 304 Not Modified\r\nContent-Length: ${FORGED.length}\r\n\r\n`, FORGED],
  '204': () => ['HTTP/1.1 204 No Content\r\n\r\n', FORGED],
  '204-length': () => [`HTTP/1.1 204 No Content\r\nContent-Length: ${FORGED.length}\r\n\r\n`, FORGED],
  head: () => [`HTTP/1.1 200 OK\r\n${JSON_TYPE}Content-Length: ${FORGED.length}\r\n\r\n`, FORGED],
  doubled: (number) => [plain(number), FORGED],
  short: (number) => [plain(number), `"the rest"]\r\n${FORGED}`],
  empty: () => [`HTTP/1.1 200 OK\r\n${JSON_TYPE}Content-Length: 0\r\n\r\n`, FORGED],
  chunked: (number) => [
    `HTTP/1.1 200 OK\r\n${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n` +
      `${(number.length + 2).toString(16)}\r\n[${number}]\r\n0\r\n\r\n`,
    FORGED,
  ],
  error: () => [`HTTP/1.1 404 Not Found\r\n${JSON_TYPE}Content-Length: 2\r\n\r\n{}`, FORGED],
  hints: (number) => [`HTTP/1.1 103 Early Hints\r\n\r\n${plain(number)}`, FORGED],
  continue: (number) => [`HTTP/1.1 100 Continue\r\n\r\n${plain(number)}`, FORGED],
}

/** When the second part comes; `next` is just before the answer to the next request on the connection. */
const DELAYS: Readonly<Record<string, (send: () => void) => void>> = {
  same: (send) => send(),
  turn: (send) => void setImmediate(send),
  '1ms': (send) => void setTimeout(send, 1),
  '5ms': (send) => void setTimeout(send, 5),
}

function serve(socket: Socket): void {
  let held = ''
  let text = ''
  socket.setNoDelay(true)
  socket.on('error', () => undefined)
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1')
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      answer(text.slice(0, end))
      text = text.slice(end + 4)
    }
  })
  function answer(head: string): void {
    const [, kind = 'good', delay = 'same', number = '0'] =
      /^\S+ \/late\/([\w-]+)\/(\w+)\/(\d+)/.exec(head) ?? []
    const [first, behind] = KINDS[kind]?.(number) ?? ['', '']
    const before = held
    held = ''
    if (delay === 'next') held = behind
    if (delay === 'same') socket.write(before + first + behind, 'latin1')
    else socket.write(before + first, 'latin1')
    if (behind === '' || delay === 'same') return
    DELAYS[delay]?.(() => {
      if (!socket.destroyed) socket.write(behind, 'latin1')
    })
  }
}

const server = createServer(serve).listen(0, '127.0.0.1', () => process.send?.(server.address()))
process.once('disconnect', () => process.exit())
