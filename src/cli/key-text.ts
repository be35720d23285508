/** Signing keys as commands print them. */
import type { StoredKey } from '../keys/key-folder.ts'

/** Seconds since the epoch. */
export const keyTime = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000', '')

export const madeLine = ({ file, signsFrom }: Pick<StoredKey, 'file' | 'signsFrom'>): string =>
  `${file}: made and published; signs from ${keyTime(signsFrom)}\n`

/** A new key for programs. */
export const madeRow = ({ file, signsFrom }: Pick<StoredKey, 'file' | 'signsFrom'>): object => ({
  file,
  signsFrom,
})
