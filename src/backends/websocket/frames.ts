/** Follows the frames of a websocket (RFC 6455 §5.2) by their heads alone, whatever pieces the bytes come in. */
export class FrameFollower {
  /** Of the frame that is being read, its head as far as it has come. */
  #head: number[] = []
  /** Bytes of its payload, mask included, that are still to come. */
  #rest = 0

  /** Whether the next byte begins a frame. */
  get isBetween(): boolean {
    return this.#head.length === 0 && this.#rest === 0
  }

  /** Takes in what was read. */
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

/** Bytes that a frame's head takes beyond its first two, by the seven bits of its length. */
const LONGER: Readonly<Record<number, number>> = { 126: 2, 127: 8 }

/** Bytes that follow a head: the mask's, if it is masked, and the payload's. Undefined while the head is not whole. */
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
