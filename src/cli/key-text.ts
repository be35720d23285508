/** Signing keys as commands print them. */
import { type KeyPlace, titleOf } from '../keys/key-place.ts'
import type { StoredKey } from '../keys/stored-key.ts'

/** Seconds since the epoch. */
export const keyTime = (seconds: number): string => new Date(seconds * 1000).toISOString().replace('.000', '')

type MadeKey = Pick<StoredKey, 'name' | 'signsFrom'>

export const madeLine = (place: KeyPlace, { name, signsFrom }: MadeKey): string =>
  `${titleOf(place, name)}: made and published; signs from ${keyTime(signsFrom)}\n`

/** A new key for programs: by its file, if it has one. */
export function madeRow(place: KeyPlace, { name, signsFrom }: MadeKey): object {
  const file = place.fileOf(name)
  return { ...(file === undefined ? { name } : { file }), signsFrom }
}
