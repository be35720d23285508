/** The values of a business (C8.7): what templates name as `{business.NAME}`. */
import { Buffer } from 'node:buffer'
import type { TextOrSecret } from '../../../base/config/schema.ts'
import type { SealedText, Sealer } from '../../../base/contracts/people/keys.ts'
import {
  type BusinessValues,
  NO_VALUES,
  type ProblemsOfValues,
} from '../../../base/contracts/people/places.ts'
import type { Entry, Store, StoredValue } from '../../../base/contracts/records/store.ts'
import type { RecordProblems } from './read-records.ts'
import { BUSINESS } from './schema.ts'
import { everyRecord } from './stored-directory.ts'

const MOST_VALUES = 64
/** The longest value, in bytes of UTF-8. */
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
function businessValues(
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

interface Around {
  /** The record as it is now; undefined: it is to be added. */
  readonly before: { readonly values?: WrittenValues | undefined; readonly disabled: boolean } | undefined
  /** The values that operations name. */
  readonly named: ReadonlyMap<string, string> | undefined
  readonly problemsOfValues?: ProblemsOfValues | undefined
}

/**
 * Reports what is wrong with the values of a record: secrets that it keeps and does not have, values that operations name and
 * it lacks, and values that lead calls to where they may not go. Earlier errors do not hinder other changes, except one
 * that enables the business.
 */
export function checkWrittenValues(
  { values = {}, disabled }: NonNullable<Around['before']>,
  { before, named = new Map(), problemsOfValues = () => [] }: Around,
  problems: RecordProblems,
): void {
  checkValues(values, problems)
  const had = before?.values ?? {}
  for (const [name, value] of Object.entries(values))
    if (textOf(value) === true && typeof had[name] !== 'object')
      problems.error(['values', name], 'keeps a secret, and there is none yet: expected a text')
  const isOpened = before === undefined || (before.disabled && !disabled)
  for (const [name, by] of named)
    if (!Object.hasOwn(values, name) && (isOpened || Object.hasOwn(had, name)))
      problems.error(['values', name], `is missing: ${by} names it as {business.${name}}`)
  const texts = Object.entries(values).flatMap(([name, value]) => {
    const text = textOf(value)
    return text === true || (!isOpened && text === had[name]) ? [] : [[name, text] as const]
  })
  for (const [name, problem] of problemsOfValues(Object.fromEntries(texts)))
    problems.error(['values', name], problem)
}

/** A value in the store: a text, or a secret that is sealed. */
type KeptValue = string | { readonly sealed: SealedText }
type KeptValues = Readonly<Record<string, KeptValue>>

const keptValuesOf = (value: StoredValue): KeptValues =>
  (value as { readonly record: { readonly values?: KeptValues } }).record.values ?? {}

/** The place of a secret of a business. It can be opened only there. */
const placeOf = (code: string, name: string): readonly string[] => [BUSINESS, code, name]

/** Whether all secrets could be opened. */
export const areOpen = ({ texts, secrets }: BusinessValues): boolean =>
  [...secrets].every((name) => texts[name] !== undefined)

/** The values of a business of the store. Rejects with Fault `identity_unavailable` if the seal cannot be read. */
export async function openValues(
  code: string,
  value: StoredValue,
  sealer: Sealer | undefined,
): Promise<BusinessValues> {
  const all = Object.entries(keptValuesOf(value))
  if (all.length === 0) return NO_VALUES
  const texts = all.map(async ([name, kept]) => {
    const text = typeof kept === 'string' ? kept : await sealer?.openText(kept.sealed, placeOf(code, name))
    return [name, text] as const
  })
  const secrets = all.flatMap(([name, kept]) => (typeof kept === 'string' ? [] : [name]))
  return businessValues(await Promise.all(texts), new Set(secrets))
}

interface Keeping {
  readonly code: string
  readonly sealer: Sealer | undefined
  /** The value of the store that is replaced; undefined: none. */
  readonly stands: StoredValue | undefined
}

/** The values of a record as the store keeps them: secrets are sealed. Rejects if there is no seal. */
export async function keepValues(
  values: WrittenValues,
  { code, sealer, stands }: Keeping,
): Promise<KeptValues> {
  const before = stands === undefined ? {} : keptValuesOf(stands)
  const kept = Object.entries(values).map(async ([name, value]) => {
    const text = textOf(value)
    if (typeof value === 'string') return [name, value] as const
    if (text === true) return [name, before[name]] as const
    if (sealer === undefined) throw new Error('secrets are written without a seal')
    return [name, { sealed: await sealer.sealText(text, placeOf(code, name)) }] as const
  })
  return Object.fromEntries(await Promise.all(kept)) as KeptValues
}

/** Every business of a store that has sealed values. */
async function* sealedBusinesses(store: Pick<Store, 'list'>): AsyncGenerator<Entry> {
  for await (const entry of everyRecord(store, BUSINESS))
    if (Object.values(keptValuesOf(entry.value)).some((kept) => typeof kept !== 'string')) yield entry
}

interface SealedValue {
  /** As messages call it: `ACME.key`. */
  readonly title: string
  /** The id of its seal. */
  readonly seal: string
  readonly canBeOpened: boolean
}

/** Every sealed value of a store. Rejects with Fault `identity_unavailable`. */
export async function sealedValues(
  store: Pick<Store, 'list'>,
  sealer: Sealer,
): Promise<readonly SealedValue[]> {
  const all: SealedValue[] = []
  for await (const { key, value } of sealedBusinesses(store))
    for (const [name, kept] of Object.entries(keptValuesOf(value))) {
      if (typeof kept === 'string') continue
      const text = await sealer.openText(kept.sealed, placeOf(key, name))
      all.push({ title: `${key}.${name}`, seal: kept.sealed.seal, canBeOpened: text !== undefined })
    }
  return all
}

/**
 * Seals the secret values of a store anew. Those that cannot be opened, and those that `to` has sealed already, stay as they are.
 * Rejects with Fault `identity_unavailable` if the store cannot be reached.
 */
export async function resealValues(
  store: Pick<Store, 'list' | 'replace'>,
  from: Sealer,
  to: Sealer,
): Promise<{ readonly sealed: readonly string[]; readonly already: readonly string[] }> {
  const sealed: string[] = []
  const already: string[] = []
  for await (const { key, value, version } of sealedBusinesses(store)) {
    const anew: Record<string, KeptValue> = {}
    for (const [name, kept] of Object.entries(keptValuesOf(value))) {
      if (typeof kept === 'string') continue
      const text = await from.openText(kept.sealed, placeOf(key, name))
      if (text === undefined) continue
      const again = await to.sealText(text, placeOf(key, name))
      if (again.seal === kept.sealed.seal) already.push(`${key}.${name}`)
      else anew[name] = { sealed: again }
    }
    const names = Object.keys(anew)
    if (names.length === 0) continue
    const { record } = value as { readonly record: object }
    const changed = { ...value, record: { ...record, values: { ...keptValuesOf(value), ...anew } } }
    // If it fails, the business was changed meanwhile: its values are sealed with the latest seal then.
    if (await store.replace(BUSINESS, key, version, changed))
      sealed.push(...names.map((name) => `${key}.${name}`))
  }
  return { sealed, already }
}
