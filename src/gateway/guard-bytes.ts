import type { Answer } from '../contracts/exchange.ts'

/**
 * What goes with bytes that are an upstream's own, whatever they are (C7.1 `produces`, report-only areas): the sign-in
 * pages have the same origin. So a browser takes them for nothing but what their type says, and opens them as a page
 * that loads nothing, runs nothing and has no origin.
 */
const GUARDS = {
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': "default-src 'none'; sandbox",
}

const GUARDED: ReadonlySet<string> = new Set(Object.keys(GUARDS).map((name) => name.toLowerCase()))

/** With the guards in the place of what the upstream says of it, in whatever spelling. */
export function guardBytes(headers: Answer['headers']): Answer['headers'] {
  const guarded: Record<string, string | readonly string[]> = {}
  for (const name in headers) {
    const value = headers[name]
    if (value !== undefined && !GUARDED.has(name.toLowerCase())) guarded[name] = value
  }
  return Object.assign(guarded, GUARDS)
}
