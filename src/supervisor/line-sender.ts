/** Sends lines on; `done` is called when they have left this process. */
export type SendLines = (text: string, lost: number, done: () => void) => void

/** Lines cross in bundles: one message a line would cost more than the line. */
const BUNDLE = 32_768
/** Characters that may wait in this process: a supervisor that hangs must not fill the memory of its workers (T5.11). */
const LIMIT = 1024 ** 2

/** A worker's lines on their way to the supervisor. Beyond the limit they are dropped, and counted. */
export class LineSender {
  readonly #send: SendLines
  #held = ''
  /** Characters that were sent, and have not left this process yet. */
  #leaving = 0
  /** Dropped before what is held, and not yet told. */
  #lost = 0

  constructor(send: SendLines) {
    this.#send = send
  }

  /** Takes whole lines. */
  write(lines: string): void {
    if (this.#hasRoom(lines.length)) this.#held += lines
    else {
      // What is held stands before the gap.
      this.flush()
      this.#lost += lines.split('\n').length - 1
    }
    if (this.#held.length > BUNDLE) this.flush()
  }

  flush(): void {
    if (this.#held === '' && (this.#lost === 0 || !this.#hasRoom(0))) return
    const [text, lost] = [this.#held, this.#lost]
    this.#held = ''
    this.#lost = 0
    this.#leaving += text.length
    this.#send(text, lost, () => (this.#leaving -= text.length))
  }

  /** Behind a gap not before half of it is free: else every other line would tell of one. */
  #hasRoom(more: number): boolean {
    return this.#held.length + this.#leaving + more <= (this.#lost > 0 ? LIMIT / 2 : LIMIT)
  }
}
