import type { StoredValue } from '../contracts/store.ts'

/** A value as every store keeps it: JSON. What JSON cannot say (undefined, dates) is lost in all of them alike. */
export const toText = (value: StoredValue): string => JSON.stringify(value)

export const fromText = (text: string): StoredValue => JSON.parse(text) as StoredValue
