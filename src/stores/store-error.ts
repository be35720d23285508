/** The store cannot be used as it is: the service must not start (T7). The message tells an operator what to do. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
  /** As system errors have one: whoever starts the service tells such errors in one line, without a stack. */
  readonly code = 'ERR_STORE_UNFIT'
}
