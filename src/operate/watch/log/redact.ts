/** Keeps secrets out of the log, and limits the length of its lines. */
import { REDACTED } from '../../../base/kernel/clean-text.ts'

const SECRET_KEY =
  /secret|passw|token(?!Type|Id$)|authorization|cookie|assertion|verifier|credential|private|^code$/i
/** The most levels of nesting. There are limits because clients, upstreams and modules choose values of any size. */
const MOST_DEPTH = 6
/** The most characters of a text. */
const MOST_TEXT = 2000
/** The most characters of an error's stack, which holds its message too. */
const MOST_STACK = 8000
/** The most members of an object, or items of a list. */
const MOST_MEMBERS = 100
/** About how many characters one call of `redact` returns at most. */
const MOST_TOGETHER = 64_000

interface Budget {
  left: number
}

/** Copies `value` without secret names, errors as plain data, at most about 64,000 characters. Never throws. */
export function redact(value: unknown, depth = 0): unknown {
  try {
    return copy(value, depth, { left: MOST_TOGETHER })
  } catch {
    return '[unreadable]'
  }
}

function copy(value: unknown, depth: number, budget: Budget): unknown {
  if (typeof value === 'string') return cut(value, MOST_TEXT, budget)
  if (typeof value === 'bigint') return cut(String(value), MOST_TEXT, budget)
  if (typeof value === 'symbol') return cut(String(value), MOST_TEXT, budget)
  if (typeof value === 'function') return undefined // JSON.stringify would call a toJSON
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MOST_DEPTH) return '[deep]'
  if (value instanceof Error) return copyError(value, depth, budget)
  if (Array.isArray(value))
    return value.slice(0, MOST_MEMBERS).map((item: unknown) => copy(item, depth + 1, budget))
  const copied: Record<string, unknown> = {}
  let members = 0
  for (const key of Object.keys(value)) {
    if (++members > MOST_MEMBERS || budget.left <= 0) break
    const item = SECRET_KEY.test(key)
      ? REDACTED
      : copy((value as Record<string, unknown>)[key], depth + 1, budget)
    Object.defineProperty(copied, cut(key, MOST_TEXT, budget), {
      value: item,
      enumerable: true,
      configurable: true,
    })
  }
  return copied
}

function cut(text: string, most: number, budget: Budget): string {
  const length = Math.max(0, Math.min(most, budget.left))
  const kept = text.length > length ? `${text.slice(0, length)}…` : text
  budget.left -= kept.length
  return kept
}

function copyError(error: Error, depth: number, budget: Budget): unknown {
  // The code that threw it may have assigned values of any type.
  const { name, message, stack, code, cause } = error as unknown as Readonly<Record<string, unknown>>
  return {
    name: cut(String(name), MOST_TEXT, budget),
    message: cut(String(message), MOST_TEXT, budget),
    ...(typeof code === 'string' && { code: cut(code, MOST_TEXT, budget) }),
    ...(typeof stack === 'string' && { stack: cut(frames(stack, String(message)), MOST_STACK, budget) }),
    ...(cause !== undefined && { cause: copy(cause, depth + 1, budget) }),
  }
}

/** A stack begins with the message. A long message would leave no space for the frames, so it is removed. */
function frames(stack: string, message: string): string {
  if (message.length <= MOST_TEXT) return stack
  const at = stack.indexOf(message)
  return at < 0 ? stack : stack.slice(0, at) + stack.slice(at + message.length)
}
