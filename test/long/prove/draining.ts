/**
 * Connections while processes end (T5.10): calls that are sent 0, 50 and 150 ms after their connection was made (`new`), or
 * after the last answer on it (`keep-alive`), while the service ends by SIGTERM or its workers are replaced. Lost is what
 * was sent over a connection that had been made, and got no whole answer. Then: what websockets hear, and when; and what
 * becomes of twenty calls in flight when the supervisor is killed.
 *
 *     node test/long/prove/draining.ts [CALLS] [ROOT]
 */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import {
  isAlive,
  killAll,
  pause,
  startProvenCrew,
  startSlowUpstream,
  type ProvenCrew,
} from './proven-pool.ts'

const goal = Number(process.argv[2] ?? 2000)
const root = process.argv[3]
const options = root === undefined ? {} : { root }
const EVERY_MS = 10
const AT_ONCE = 5
const FUNDS = '/api/1.0/b/ACME/fund-data/fund-list'

interface Tally {
  sent: number
  lost: number
}

type Outcome = 'closes' | 'stays' | 'lost'

const requestOf = ({ token, port }: ProvenCrew): string =>
  `GET ${FUNDS} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\n\r\n`

const connected = (port: number): Promise<Socket | undefined> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket))
    socket.on('error', () => resolve(undefined))
  })

/** Sends a call over a connection that stands, and waits for its answer. */
function exchange(socket: Socket, request: string): Promise<Outcome> {
  return new Promise((resolve) => {
    let text = ''
    const done = (outcome: Outcome): void => {
      socket.off('data', read).off('close', broken).off('end', broken)
      resolve(outcome)
    }
    const broken = (): void => done('lost')
    const read = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      const head = text.indexOf('\r\n\r\n')
      const length = /content-length: (\d+)/i.exec(text)?.[1]
      if (head < 0 || length === undefined || text.length < head + 4 + Number(length)) return
      done(/connection: close/i.test(text.slice(0, head)) ? 'closes' : 'stays')
    }
    socket.on('data', read).once('close', broken).once('end', broken)
    socket.write(request)
  })
}

/** One connection: a call `delay` after it was made, and with `keep` more of them, each `delay` after the answer before. */
async function client(pool: ProvenCrew, delay: number, keep: number, tally: Tally): Promise<void> {
  const socket = await connected(pool.port)
  if (socket === undefined) return
  const isEnded = (): boolean => socket.readableEnded || socket.destroyed
  socket.resume()
  const request = requestOf(pool)
  for (let call = 0; call <= keep; call++) {
    if (delay > 0) await pause(delay)
    // A client sees a connection that was closed before it sends, and makes another; a new one must be served.
    if (isEnded() && call > 0) break
    tally.sent += 1
    const outcome = isEnded() ? 'lost' : await exchange(socket, request)
    if (outcome === 'lost') tally.lost += 1
    if (outcome !== 'stays') break
  }
  socket.destroy()
}

/** Clients come at a steady rate until told to stop; resolves when the last is done. */
function load(pool: ProvenCrew, delay: number, keep: number, tally: Tally): () => Promise<void> {
  const running = new Set<Promise<void>>()
  const timer = setInterval(() => {
    for (let one = 0; one < AT_ONCE; one++) {
      const work = client(pool, delay, keep, tally)
      running.add(work)
      void work.finally(() => running.delete(work))
    }
  }, EVERY_MS)
  return async () => {
    clearInterval(timer)
    await Promise.all(running)
  }
}

async function untilGone(pid: number, ms: number): Promise<void> {
  for (const until = performance.now() + ms; performance.now() < until && isAlive(pid);) await pause(20)
  killAll(pid)
}

const { url, server } = await startSlowUpstream()

async function endings(delay: number, keep: number): Promise<Tally> {
  const tally = { sent: 0, lost: 0 }
  while (tally.sent < goal) {
    const pool = await startProvenCrew(url, options)
    const stop = load(pool, delay, keep, tally)
    await pause(700)
    process.kill(pool.pid, 'SIGTERM')
    await pause(900)
    const stopped = stop()
    await untilGone(pool.pid, 30_000)
    await stopped
  }
  return tally
}

async function restarts(delay: number, keep: number): Promise<Tally> {
  const tally = { sent: 0, lost: 0 }
  const pool = await startProvenCrew(url, options)
  const stop = load(pool, delay, keep, tally)
  while (tally.sent < goal) await pool.order('/restart', 60_000)
  await stop()
  process.kill(pool.pid, 'SIGTERM')
  await untilGone(pool.pid, 30_000)
  return tally
}

const rows = []
for (const [how, run] of Object.entries({ SIGTERM: endings, 'rolling restart': restarts }))
  for (const [kind, keep] of Object.entries({ new: 0, 'keep-alive': 20 }))
    for (const delay of [0, 50, 150]) {
      const { sent, lost } = await run(delay, keep)
      rows.push({ how, kind, 'after ms': delay, sent, lost })
      console.log(JSON.stringify(rows.at(-1)))
    }
console.table(rows)

/** Takes every websocket, and says nothing. */
async function websocketUpstream(): Promise<string> {
  const upstream = createServer()
  upstream.on('upgrade', (request, socket) => {
    const key = `${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
    const accept = createHash('sha1').update(key).digest('base64')
    socket.on('error', () => undefined)
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    )
  })
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  upstream.unref()
  return `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
}

async function websockets(): Promise<void> {
  const more = `
areas: { fund-data: { backend: live } }
actions:
  - { level: business, area: fund-data, action: live, methods: { GET: { websocket: true, scopes: { any: [fund.read] } } } }`
  const live = await websocketUpstream()
  const pool = await startProvenCrew(`${url} }, live: { kind: stream, target: ${live}`, { ...options, more })
  const socket = await connected(pool.port)
  if (socket === undefined) throw new Error('not connected')
  socket.write(
    `GET /api/1.0/b/ACME/fund-data/live HTTP/1.1\r\nHost: 127.0.0.1:${pool.port}\r\nAuthorization: Bearer ${pool.token}\r\n` +
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  const first = await new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
  const since = performance.now()
  const heard = new Promise<string>((resolve) =>
    socket.once('data', (frame) => resolve(String(Buffer.from(frame).readUInt16BE(2)))),
  )
  process.kill(pool.pid, 'SIGTERM')
  const code = await heard
  console.log(
    `websocket (${first.slice(0, 12)}): told ${code} after ${(performance.now() - since).toFixed(0)} ms`,
  )
  socket.destroy()
  await untilGone(pool.pid, 30_000)
}

async function orphans(): Promise<void> {
  const slow = await startSlowUpstream(2000)
  const pool = await startProvenCrew(slow.url, options)
  const workers = pool.workers()
  const outcomes = Array.from({ length: 20 }, async () => {
    const socket = await connected(pool.port)
    return socket === undefined ? 'lost' : exchange(socket, requestOf(pool))
  })
  await pause(500)
  process.kill(pool.pid, 'SIGKILL')
  const since = performance.now()
  const cut = (await Promise.all(outcomes)).filter((outcome) => outcome === 'lost').length
  while (workers.some(isAlive) && performance.now() - since < 30_000) await pause(20)
  const left = workers.filter(isAlive).length
  console.log(
    `supervisor killed: ${cut} of 20 calls cut; workers gone after ${(performance.now() - since).toFixed(0)} ms, ${left} left`,
  )
  for (const each of workers) if (isAlive(each)) process.kill(each, 'SIGKILL')
  slow.server.close()
  slow.server.closeAllConnections()
}

await orphans()
await websockets()
server.close()
server.closeAllConnections()
