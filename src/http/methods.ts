/** Methods that ask for nothing to be changed (RFC 9110 §9.2.1), so that a call may be sent again without harm. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS'])

export const isSafe = (method: string): boolean => SAFE.has(method)

/** Methods whose content has no meaning (RFC 9110 §9.3.1), and of which receivers disagree on where it ends. */
export const isBodiless = (method: string): boolean => method === 'GET' || method === 'HEAD'
