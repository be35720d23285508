/** Keys cannot be used as they are, so the service must not start (T7). The message says what an operator can do. */
export class KeyError extends Error {
  override readonly name = 'KeyError'
}
