import type { QuickBounds } from '../../base/http/xml/writer-rules.ts'

/**
 * The most bytes that are converted at once: most take 1 ms, the worst some 10 ms. By what costs most of it: to read XML, or
 * to write XML of a service's own; to make a value of JSON; to write JSON as XML in one pass.
 */
export const AT_ONCE = { xml: 8 * 1024, json: 64 * 1024, writing: 256 * 1024 }
/** What is written at once may not need more than this either. Each of the two takes a few milliseconds. */
export const QUICK: QuickBounds = { newKeys: 4000, bytes: 4 * 1024 ** 2 }

/** Whether a body is converted at once, without a slot and a thread. */
export const isSmall = ({ length }: Pick<Uint8Array, 'length'>, work: keyof typeof AT_ONCE): boolean =>
  length <= AT_ONCE[work]
