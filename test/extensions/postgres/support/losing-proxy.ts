/**
 * A way to Postgres that fails as networks and servers do: it loses the answers to chosen statements, is late, freezes, is
 * cut, or leads to another server from now on.
 */
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'

/** What Postgres sends when a statement has ended, and is committed: ReadyForQuery, outside of a transaction. */
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])

/** Whether the client asks to run this statement, by its name: a message Bind, of the unnamed portal. */
const asksFor = (bytes: Buffer, statement: string): boolean => bytes.includes(`\0${statement}\0`)

/** The names of the prepared statements that a client asks to run: of messages Bind, of the unnamed portal. */
const statementsIn = (bytes: Buffer): readonly string[] =>
  Array.from(bytes.toString('latin1').matchAll(/B[^]{4}\0([a-z_]+)\0/g), ([, name]) => name!)

interface Way {
  readonly client: Socket
  readonly server: Socket
  /** The answer that comes next is lost. */
  loses: boolean
}

function hold({ client, server }: Way): void {
  client.pause()
  server.pause()
}

export class LosingProxy {
  readonly port: number
  readonly #listener: Server
  readonly #ways = new Set<Way>()
  #target: number
  #delay = 0
  #isFrozen = false
  #isCut = false
  #losing: { readonly statement: string; left: number } | undefined
  /** Answers that were lost so far. */
  lost = 0
  /** Called with the name of each statement before it is asked. */
  asked: (statement: string) => void = () => undefined
  /** Called when an answer was lost. */
  hasLost: () => void = () => undefined

  private constructor(listener: Server, target: number) {
    this.#listener = listener
    this.#target = target
    this.port = (listener.address() as AddressInfo).port
    listener.on('connection', (client) => this.#join(client))
  }

  /** @param target port of Postgres, on loopback */
  static async open(target: number): Promise<LosingProxy> {
    const listener = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    return new LosingProxy(listener, target)
  }

  url(user = 'postern'): string {
    return `postgres://${user}@127.0.0.1:${this.port}/postgres`
  }

  /** The next `count` answers to a statement are lost: it has run, and the connection breaks. */
  lose(statement: string, count = 1): void {
    this.#losing = { statement, left: count }
  }

  /** Answers come so many milliseconds later. */
  delay(ms: number): void {
    this.#delay = ms
  }

  /** Nothing goes either way until `mend`; connections stay open. */
  freeze(): void {
    this.#isFrozen = true
    for (const way of this.#ways) hold(way)
  }

  /** Ends a freeze for connections to come. On those that are open nothing ever comes again. */
  forget(): void {
    this.#isFrozen = false
  }

  /** All connections break, and new ones too, until `mend`. */
  cut(): void {
    this.#isCut = true
    this.#breakAll()
  }

  mend(): void {
    this.#isFrozen = this.#isCut = false
    this.#delay = 0
    this.#losing = undefined
    for (const { client, server } of this.#ways) {
      client.resume()
      server.resume()
    }
  }

  /** From now on it leads to another server. Connections to the one before break. */
  leadTo(target: number): void {
    this.#target = target
    this.#breakAll()
  }

  async close(): Promise<void> {
    this.#breakAll()
    this.#listener.close()
    await once(this.#listener, 'close')
  }

  #join(client: Socket): void {
    client.on('error', () => undefined)
    if (this.#isCut) return void client.resetAndDestroy()
    const server = connect(this.#target, '127.0.0.1')
    const way: Way = { client, server, loses: false }
    this.#ways.add(way)
    server.on('error', () => undefined)
    for (const socket of [client, server]) socket.on('close', () => this.#break(way))
    client.on('data', (bytes: Buffer) => this.#ask(way, bytes))
    server.on('data', (bytes: Buffer) => this.#answer(way, bytes))
    if (this.#isFrozen) hold(way)
    else client.resume()
  }

  #ask(way: Way, bytes: Buffer): void {
    for (const statement of statementsIn(bytes)) this.asked(statement)
    const losing = this.#losing
    if (losing !== undefined && losing.left > 0 && asksFor(bytes, losing.statement)) {
      losing.left -= 1
      way.loses = true
    }
    way.server.write(bytes)
  }

  #answer(way: Way, bytes: Buffer): void {
    if (way.loses) {
      if (!bytes.subarray(-READY.length).equals(READY)) return
      this.lost += 1
      this.#break(way)
      this.hasLost()
    } else if (this.#delay === 0) way.client.write(bytes)
    else setTimeout(() => way.client.write(bytes), this.#delay).unref()
  }

  #break(way: Way): void {
    this.#ways.delete(way)
    for (const socket of [way.client, way.server]) socket.resetAndDestroy()
  }

  #breakAll(): void {
    for (const way of [...this.#ways]) this.#break(way)
  }
}
