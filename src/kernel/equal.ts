import { createHash, timingSafeEqual } from 'node:crypto'

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares two secrets in a time that depends on neither, lengths included. */
export const equalSecrets = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))
