import { randomBytes } from 'node:crypto'
import type { SealKey } from '../../src/identity/keys/signing/seal.ts'

/** A seal with a fresh key. */
export const sealKey = (id: string): SealKey => ({ id, key: randomBytes(32).toString('base64') })
