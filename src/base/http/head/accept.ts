import { LRUCache } from 'lru-cache'
import { Fault } from '../../kernel/faults.ts'
import {
  type AcceptRange,
  byPreference,
  covers,
  decisiveRange,
  parseAccept,
  parseMediaType,
} from './media-type.ts'

export type Format = 'json' | 'xml'

/** The Accept header: node's joined string, its lines, or undefined if there is none. */
export type AcceptLines = string | readonly string[] | undefined

export interface Representation {
  readonly format: Format
  /** The action version that answers. */
  readonly version: number
  /** The Content-Type of a success (C2.5). */
  readonly contentType: string
}

export interface ActionVersions {
  readonly versions: readonly number[]
  /** The version for clients that ask for none (C7.3). */
  readonly defaultVersion: number
}

export interface Negotiation {
  /** The format of an error, for any Accept whatever (C2.4). Never throws. */
  formatOfErrors(accept: AcceptLines): Format
  /**
   * The type that answers (C7.2, C7.3). Throws Fault `not_acceptable`, or `unknown_action_version` if only our vendor's
   * type was wanted.
   */
  negotiate(accept: AcceptLines, action: ActionVersions): Representation
  /**
   * The type that answers, as configured, for an action with its own `produces` (C7.1). Where the configuration
   * gives a range (`image/*`), the client's narrower type is the answer. Throws Fault `not_acceptable`.
   */
  negotiateOwn(accept: AcceptLines, produces: readonly string[]): string
  /** Userinfo speaks JSON only (C6.3.1). Throws Fault `not_acceptable` or `unknown_action_version`. */
  requireJson(accept: AcceptLines): void
}

/** One type that the client takes. `version` undefined: the plain type, whatever the version. */
interface Offer {
  readonly format: Format
  readonly version: string | undefined
  readonly contentType: string
  readonly range: AcceptRange
}

/** All that can be said about an Accept header before the action is known. */
interface Preference {
  readonly ranges: readonly AcceptRange[]
  readonly formatOfErrors: Format
  /** Best first. */
  readonly offers: readonly Offer[]
}

export const PLAIN_TYPES = { json: 'application/json', xml: 'application/xml' } as const
const FORMATS: readonly Format[] = ['json', 'xml']
const UTF8 = '; charset=utf-8'
const ANYTHING: AcceptRange = { type: '*/*', q: 1, specificity: 0, order: 0, matches: true }

// A flood of distinct headers costs its parsing and never memory: at most 500 × 256 characters are kept.
const CACHE_ENTRIES = 500
const CACHE_KEY_LENGTH = 256

/** Negotiation for a deployment's vendor name and default format (C7.1, C7.2). Made once, at load. */
export function compileNegotiation(options: { vendor: string; defaultFormat: Format }): Negotiation {
  const preferenceOf = rememberPreferences((lines) => readPreference(lines, options))
  return {
    formatOfErrors: (accept) => preferenceOf(accept).formatOfErrors,
    negotiate: (accept, action) => chooseOffer(preferenceOf(accept).offers, action),
    negotiateOwn: (accept, produces) => chooseOwn(preferenceOf(accept).ranges, produces),
    requireJson: (accept) => {
      const offers = preferenceOf(accept).offers.filter(({ format }) => format === 'json')
      if (offers.length === 0) throw new Fault('not_acceptable', { offered: [PLAIN_TYPES.json] })
      chooseOffer(offers, { versions: [1], defaultVersion: 1 })
    },
  }
}

type Reader = (lines: readonly string[]) => Preference

function rememberPreferences(read: Reader): (accept: AcceptLines) => Preference {
  const absent = read([])
  const known = new LRUCache<string, Preference>({ max: CACHE_ENTRIES })
  return (lines) => {
    const accept = typeof lines === 'object' && lines.length < 2 ? lines[0] : lines
    if (accept === undefined) return absent
    if (typeof accept !== 'string') return read(accept)
    const found = known.get(accept)
    if (found !== undefined) return found
    const preference = read([accept])
    if (accept.length <= CACHE_KEY_LENGTH) known.set(accept, preference)
    return preference
  }
}

function readPreference(
  lines: readonly string[],
  { vendor, defaultFormat }: { vendor: string; defaultFormat: Format },
): Preference {
  const named = parseAccept(lines) ?? [ANYTHING]
  const ranges = named.filter(({ matches }) => matches)
  const formats = FORMATS.toSorted((a, b) => Number(b === defaultFormat) - Number(a === defaultFormat))
  const readVendorType = vendorTypeReader(vendor)
  // The sort is stable: of two plain types that one wildcard means, the default stays first.
  const offers = [
    ...formats.flatMap((format) => plainOffer(ranges, format)),
    ...vendorOffers(ranges, readVendorType),
  ].sort((a, b) => byPreference(a.range, b.range))
  const naming = named.filter(({ q }) => q > 0).sort(byPreference)
  const formatNamed = ({ type }: AcceptRange): Format | undefined =>
    FORMATS.find((format) => PLAIN_TYPES[format] === type) ?? readVendorType(type)?.format
  return { ranges, offers, formatOfErrors: firstDefined(naming, formatNamed) ?? defaultFormat }
}

function firstDefined<T, R>(items: readonly T[], read: (item: T) => R | undefined): R | undefined {
  for (const item of items) {
    const result = read(item)
    if (result !== undefined) return result
  }
  return undefined
}

function plainOffer(ranges: readonly AcceptRange[], format: Format): readonly Offer[] {
  const type = PLAIN_TYPES[format]
  const range = decisiveRange(ranges.filter((each) => covers(each.type, type)))
  return range === undefined ? [] : [{ format, version: undefined, contentType: type + UTF8, range }]
}

/** Wildcards mean the plain types only (C7.2): a vendor type is offered where it is named. */
function vendorOffers(ranges: readonly AcceptRange[], readVendorType: VendorTypeReader): readonly Offer[] {
  const excluded = new Set(ranges.filter(({ q }) => q === 0).map(({ type }) => type))
  return ranges.flatMap((range) => {
    const asked = excluded.has(range.type) ? undefined : readVendorType(range.type)
    return asked === undefined ? [] : [{ ...asked, contentType: range.type + UTF8, range }]
  })
}

const vendorPrefix = (vendor: string): string => `application/vnd.${vendor.toLowerCase()}.action.v`

/** The type by which a client asks for a version (C7.1). */
export const vendorType = (vendor: string, version: number, format: Format): string =>
  `${vendorPrefix(vendor)}${version}+${format}`

type VendorTypeReader = (type: string) => { format: Format; version: string } | undefined

/** The version stays text: `007` and `1.5` are versions that no action has (C7.3). */
function vendorTypeReader(vendor: string): VendorTypeReader {
  const prefix = vendorPrefix(vendor)
  return (type) => {
    if (!type.startsWith(prefix)) return undefined
    const [version = '', suffix, more] = type.slice(prefix.length).split('+')
    const format = FORMATS.find((each) => each === suffix)
    return format === undefined || more !== undefined ? undefined : { format, version }
  }
}

function chooseOffer(offers: readonly Offer[], { versions, defaultVersion }: ActionVersions): Representation {
  for (const { format, version: asked, contentType } of offers) {
    if (asked === undefined) return { format, version: defaultVersion, contentType }
    const version = versions.find((each) => String(each) === asked)
    if (version !== undefined) return { format, version, contentType }
  }
  // An offer that is left can only be our vendor's, in a version that the action does not have.
  throw offers.length > 0
    ? new Fault('unknown_action_version', { offered: versions.map(String) })
    : new Fault('not_acceptable')
}

interface OwnMatch {
  readonly type: string
  readonly range: AcceptRange
}

function chooseOwn(ranges: readonly AcceptRange[], produces: readonly string[]): string {
  const matches = produces.flatMap((produced) => ownMatches(ranges, produced))
  const best = matches.sort((a, b) => byPreference(a.range, b.range))[0]
  if (best === undefined) throw new Fault('not_acceptable', { offered: produces })
  return best.type
}

function ownMatches(ranges: readonly AcceptRange[], produced: string): readonly OwnMatch[] {
  const type = parseMediaType(produced)?.type ?? produced
  const range = decisiveRange(ranges.filter((each) => covers(each.type, type)))
  const narrower = ranges.filter((each) => each.type !== type && covers(type, each.type))
  const narrowed = narrower
    .filter((each) => decisiveRange(narrower.filter((other) => other.type === each.type)) === each)
    .map((each) => ({ type: each.type, range: each }))
  return range === undefined ? narrowed : [...narrowed, { type: produced, range }]
}

/** Whether a client would rather have an HTML page than anything else that it names, as browsers would. */
export function prefersPage(lines: AcceptLines): boolean {
  const [best] = [...(parseAccept(typeof lines === 'string' ? [lines] : (lines ?? [])) ?? [])].sort(
    byPreference,
  )
  return best !== undefined && best.q > 0 && best.type === 'text/html'
}
