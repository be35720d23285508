/**
 * Goes on at once where nothing has to be waited for, so that the common call costs no turn of the event loop. (A module
 * that exports a `then` is taken for a promise by whoever imports it dynamically.)
 */
export const goOn = <T, R>(value: T | Promise<T>, next: (value: T) => R | Promise<R>): R | Promise<R> =>
  value instanceof Promise ? value.then(next) : next(value)
