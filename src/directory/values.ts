/** The values of a business (C8.7): what templates name as `{business.NAME}`. */
import { Buffer } from 'node:buffer'
import type { TextOrSecret } from '../config/schema.ts'
import type { SealedText, Sealer } from '../contracts/keys.ts'
import { type BusinessValues, NO_VALUES } from '../contracts/places.ts'
import type { StoredValue } from '../contracts/store.ts'
import type { RecordProblems } from './read-records.ts'
import { BUSINESS, readBusiness } from './schema.ts'

const MOST_VALUES = 64
/** Of UTF-8. */
const MOST_BYTES = 1024

export type WrittenValues = Readonly<Record<string, TextOrSecret>>

const textOf = (value: TextOrSecret): string | true => (typeof value === 'string' ? value : value.secret)

/** Reports values that are too many, too long or no Unicode text. No message shows one. */
export function checkValues(values: WrittenValues, problems: RecordProblems): void {
  const all = Object.entries(values)
  if (all.length > MOST_VALUES)
    problems.error(['values'], `has ${all.length} entries; expected at most ${MOST_VALUES}`)
  for (const [name, value] of all) {
    const text = textOf(value)
    if (text === true) continue
    if (Buffer.byteLength(text) > MOST_BYTES)
      problems.error(['values', name], `is longer than ${MOST_BYTES} bytes`)
    if (!text.isWellFormed()) problems.error(['values', name], 'is no Unicode text')
  }
}

/** @param texts by name; of a secret that cannot be opened undefined */
export function businessValues(
  texts: Iterable<readonly [name: string, text: string | undefined]>,
  secrets: ReadonlySet<string>,
): BusinessValues {
  const known = [...texts].filter(([, text]) => text !== undefined)
  if (known.length === 0 && secrets.size === 0) return NO_VALUES
  const byName = Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(known))
  return { texts: Object.freeze(byName), secrets }
}

const secretsIn = (values: WrittenValues): ReadonlySet<string> =>
  new Set(Object.entries(values).flatMap(([name, value]) => (typeof value === 'string' ? [] : [name])))

/** The values of a business of the configuration. Reports what is wrong with them. */
export function compileValues(values: WrittenValues, problems: RecordProblems): BusinessValues {
  checkValues(values, problems)
  const texts = Object.entries(values).map(([name, value]) => {
    const text = textOf(value)
    return [name, text === true ? undefined : text] as const
  })
  return businessValues(texts, secretsIn(values))
}

/** As they are shown to operators: a secret is there, and is not told. */
export const shownValues = ({ texts, secrets }: BusinessValues): WrittenValues =>
  Object.fromEntries(
    [...new Set([...Object.keys(texts), ...secrets])].map((name) => [
      name,
      secrets.has(name) ? { secret: true } : (texts[name] ?? ''),
    ]),
  )

/** A value in the store: a text, or a secret that is sealed. */
type KeptValue = string | { readonly sealed: SealedText }
type KeptValues = Readonly<Record<string, KeptValue>>

const keptValuesOf = (value: StoredValue): KeptValues =>
  (value as { readonly record: { readonly values?: KeptValues } }).record.values ?? {}

/** Where a secret of a business stands: it opens nowhere else. */
const placeOf = (code: string, name: string): readonly string[] => [BUSINESS, code, name]

/** Whether all secrets could be opened. */
export const areOpen = ({ texts, secrets }: BusinessValues): boolean =>
  [...secrets].every((name) => texts[name] !== undefined)

/** The values of a business of the store. Rejects with Fault `identity_unavailable` if the seal cannot be read. */
export async function openValues(value: StoredValue, sealer: Sealer | undefined): Promise<BusinessValues> {
  const all = Object.entries(keptValuesOf(value))
  if (all.length === 0) return NO_VALUES
  const { code } = readBusiness(value)
  const texts = all.map(async ([name, kept]) => {
    const text = typeof kept === 'string' ? kept : await sealer?.open(kept.sealed, placeOf(code, name))
    return [name, text] as const
  })
  const secrets = all.flatMap(([name, kept]) => (typeof kept === 'string' ? [] : [name]))
  return businessValues(await Promise.all(texts), new Set(secrets))
}
