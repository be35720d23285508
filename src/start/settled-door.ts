import type { Door } from '../contracts/exchange.ts'
import type { View } from '../contracts/store.ts'

/**
 * In the first turn after this process was paused, a call waits until the change feed was read: else it would be answered
 * by what was known before, and a token that was revoked meanwhile would be accepted.
 */
export const settledDoor =
  (view: View, door: Door): Door =>
  (exchange) =>
    view.isSettled() ? door(exchange) : view.settle().then(() => door(exchange))
