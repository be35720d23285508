/** Keys cannot be used as they are, so the service must not start (T7). The message says what an operator can do. */
export class KeyError extends Error {
  override readonly name: string = 'KeyError'
}

/** Something is sealed with a seal that `store.seal` does not have. */
export class MissingSeal extends KeyError {
  override readonly name = 'MissingSeal'
  readonly seal: string

  constructor(message: string, seal: string) {
    super(message)
    this.seal = seal
  }
}
