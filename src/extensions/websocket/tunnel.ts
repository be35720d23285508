import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import type { Tunnel, TunnelEnd } from '../../base/contracts/calls/backend.ts'
import { isLost } from '../../base/http/body/read-body.ts'

/** Follows the frames of a websocket (RFC 6455 §5.2) by their heads alone. The bytes may come in any pieces. */
export class FrameFollower {
  /** The part of the current frame's head that has come so far. */
  #head: number[] = []
  /** How many bytes of its payload, mask included, are still to come. */
  #rest = 0

  get isBetween(): boolean {
    return this.#head.length === 0 && this.#rest === 0
  }

  follow(bytes: Buffer): void {
    for (let at = 0; at < bytes.length;) at += this.#step(bytes, at)
  }

  /** Takes in no more than what completes the frame that is being read; answers how many bytes that was. */
  complete(bytes: Buffer): number {
    let at = 0
    while (at < bytes.length && !this.isBetween) at += this.#step(bytes, at)
    return at
  }

  #step(bytes: Buffer, at: number): number {
    if (this.#rest > 0) {
      const taken = Math.min(this.#rest, bytes.length - at)
      this.#rest -= taken
      return taken
    }
    this.#head.push(bytes[at] ?? 0)
    const rest = payloadLength(this.#head)
    if (rest === undefined) return 1
    this.#rest = rest
    this.#head = []
    return 1
  }
}

/** How many bytes a frame's head has after its first two, by the seven bits of its length. */
const LONGER: Readonly<Record<number, number>> = { 126: 2, 127: 8 }

/** How many bytes follow a head: the mask, if it is masked, and the payload. Undefined while the head is not whole. */
function payloadLength(head: readonly number[]): number | undefined {
  const [, second] = head
  if (second === undefined) return undefined
  const short = second & 0x7f
  const longer = LONGER[short] ?? 0
  if (head.length < 2 + longer) return undefined
  const length = longer === 0 ? short : head.slice(2).reduce((sum, byte) => sum * 256 + byte, 0)
  return length + (second & 0x80 ? 4 : 0)
}

/** A server's close frame (RFC 6455 §5.5.1). The reason is short and ASCII. */
export function closeFrame(code: number, reason: string): Buffer {
  const payload = Buffer.from(`\0\0${reason}`)
  payload.writeUInt16BE(code)
  return Buffer.concat([Buffer.of(0x88, payload.length), payload])
}

/** The close frames that the client gets (RFC 6455 §7.4.1). */
const CLOSES: Readonly<Record<TunnelEnd, Buffer>> = {
  closed: closeFrame(1001, ''),
  token: closeFrame(1008, 'The access token is valid no more'),
  idle: closeFrame(1001, 'Nothing was sent for too long'),
  shutdown: closeFrame(1001, 'The service is restarting'),
}
/** How long the client may take to read the close and end its side, in milliseconds. */
const GRACE_MS = 1000
/** How often it is checked whether the client is still there, in milliseconds. */
const LOOK_MS = 4000

interface TunnelRules {
  readonly endsWithToken: boolean
  /** How long no byte may come in either direction, in milliseconds. */
  readonly idle: number
}

/**
 * A websocket between a client and an upstream. Its maker passes the bytes, in pieces no larger than the slower side
 * takes; here it is only watched, so that it can be ended between two frames.
 */
export class WebsocketTunnel implements Tunnel {
  readonly endsWithToken: boolean
  readonly #client: Socket
  readonly #upstream: Socket
  readonly #frames = new FrameFollower()
  readonly #follow = (chunk: Buffer): void => this.#frames.follow(chunk)
  readonly #listeners: ((end: TunnelEnd) => void)[] = []
  #end: TunnelEnd = 'closed'
  #closing = false

  constructor(client: Socket, upstream: Socket, { endsWithToken, idle }: TunnelRules) {
    this.endsWithToken = endsWithToken
    this.#client = client
    this.#upstream = upstream
    upstream.on('data', this.#follow)
    // Every byte of a tunnel passes the upstream's socket, so one of the two shows that it is idle.
    upstream.setTimeout(idle, () => this.close('idle'))
    // Then the client's alone can, whose side of the connection may still be open.
    upstream.once('close', () => client.setTimeout(idle, () => client.destroy()))
    const looking = setInterval(() => this.#look(), LOOK_MS).unref()
    client.once('close', () => {
      clearInterval(looking)
      this.#closed()
    })
  }

  /** While the upstream does not read, nobody reads the client either, and its reset would not be noticed. */
  #look(): void {
    if (this.#client.isPaused() && isLost(this.#client)) this.#client.destroy()
  }

  onEnd(listener: (end: TunnelEnd) => void): void {
    if (this.#client.closed) queueMicrotask(() => listener(this.#end))
    else this.#listeners.push(listener)
  }

  close(end: TunnelEnd): void {
    if (this.#closing) return
    this.#closing = true
    this.#end = end
    const frame = CLOSES[end]
    setTimeout(() => this.#destroy(), GRACE_MS).unref()
    this.#upstream.off('data', this.#follow).unpipe(this.#client)
    if (this.#frames.isBetween) this.#say(frame)
    else this.#finishFrame(frame)
  }

  /** A close within another frame's payload would be payload: the frame that is on its way is passed to its end first. */
  #finishFrame(frame: Buffer): void {
    this.#upstream.on('data', (chunk: Buffer) => {
      if (this.#client.writableEnded) return
      const taken = this.#frames.complete(chunk)
      if (!this.#client.write(chunk.subarray(0, taken))) this.#upstream.pause()
      if (this.#frames.isBetween) this.#say(frame)
    })
    this.#client.on('drain', () => this.#upstream.resume())
    this.#upstream.resume()
  }

  #say(frame: Buffer): void {
    this.#client.end(frame)
    this.#upstream.destroy()
    // Nobody reads its frames any more; its own close, and its end, are waited for.
    this.#client.resume()
  }

  #destroy(): void {
    this.#upstream.destroy()
    this.#client.destroy()
  }

  #closed(): void {
    // A client that broke off does not end the upstream's side of itself: what is on its way may still arrive.
    this.#upstream.destroySoon()
    for (const listener of this.#listeners.splice(0)) listener(this.#end)
  }
}
