/** `--from`: the service as its description has it, and what of it a configuration cannot say. */
import {
  describeService,
  type Note,
  type OperationBusiness,
  type ServiceFromDescription,
} from './describe-service.ts'
import { addressIn, chosenOperations, type DescribedOperation, isOf, operationsOf } from './operations.ts'
import {
  type BusinessPlace,
  foldParameter,
  type FoundPlace,
  isSamePlace,
  lastName,
  type NamedPlace,
  placesOf,
  countedText,
  placeText,
  type ProposedPlaces,
} from './places.ts'
import { type Description, DescriptionError, readDescription } from './read-description.ts'
import type { DescribedService } from '../../operate/hooks/first-configuration.ts'
import { shellWord } from '../../operate/operation/terminal.ts'

export interface DescribedApi {
  readonly service: DescribedService
  /** A line for each. */
  readonly notes: readonly string[]
  /** A line for each kind. */
  readonly kinds: readonly string[]
  /** All that are chosen, in the order of the description. */
  readonly operations: readonly OperationBusiness[]
}

/** Parameters that are codes, unless options name others. */
const USUAL = {
  business: ['business', 'businessId', 'businessCode', 'tenant', 'tenantId'],
  fund: ['fund', 'fundId', 'fundCode'],
} as const

const folded = (names: readonly string[]): ReadonlySet<string> => new Set(names.map(foldParameter))

const noteText = (file: string, { line, what }: Note): string =>
  `${file}${line === undefined ? '' : `:${line}`}  ${what}`

/** Names that are counted in a line. */
const MOST_NAMES = 12

/** One line for the notes of a kind. */
function kindText(file: string, [first, ...others]: readonly Note[]): string {
  if (first === undefined || others.length === 0) return first === undefined ? '' : noteText(file, first)
  const counts = new Map<string, number>()
  const all = [first, ...others]
  for (const name of all.flatMap(({ names }) => names)) counts.set(name, (counts.get(name) ?? 0) + 1)
  const sorted = [...counts].toSorted(([, one], [, other]) => other - one)
  const told = sorted.slice(0, MOST_NAMES).map(([name, count]) => `${name} (${count})`)
  const tally = told.length === 0 ? '' : `: ${told.join(', ')}${sorted.length > MOST_NAMES ? ', …' : ''}`
  return noteText(file, { ...first, what: `${first.kind}${tally} [${all.length} times, first here]` })
}

/** How options say that a description is read. */
export interface DescriptionOptions {
  /** Undefined: wherever a parameter in path, query or header has a usual name. */
  readonly places: readonly BusinessPlace[] | undefined
  readonly fund: readonly string[] | undefined
  /** Places with a usual name that are no business. */
  readonly notBusiness: readonly NamedPlace[]
  readonly only: readonly string[]
  /** Operations that belong to nobody. */
  readonly shared: readonly string[]
}

const PLACES_LISTED = 12

const isThere = (place: BusinessPlace, found: readonly FoundPlace[]): boolean =>
  place.kind === 'identity' ||
  found.some((each) => isSamePlace(each, place)) ||
  // Text around the value makes a whole host: the described one needs no variable.
  (place.kind === 'host' && /[^{}]\{|\}[^{}]/.test(place.value))

/** A misspelled place would let clients choose the business. @throws DescriptionError */
function requireUsed(
  file: string,
  { places = [], fund = [] }: DescriptionOptions,
  { places: found, notBusinessUnused: [other] }: ServiceFromDescription,
): void {
  if (other !== undefined)
    throw new DescriptionError(
      `--not-business ${placeText(other)}: no operation of ${file} has a business there, by its name`,
    )
  const proposed = found.slice(0, PLACES_LISTED).map(countedText)
  const there = found.length === 0 ? 'There are none' : `There are ${proposed.join(', ')}`
  for (const place of places)
    if (!isThere(place, found))
      throw new DescriptionError(
        `--business-in ${placeText(place)}: no operation of ${file} has such a place. ${there}`,
      )
  const names = new Set(found.filter(({ kind }) => kind !== 'body').map(({ name }) => foldParameter(name)))
  const [unknown] = fund.filter((name) => !names.has(foldParameter(name)))
  if (unknown !== undefined)
    throw new DescriptionError(
      `--fund-parameter ${unknown}: no operation of ${file} has such a parameter in path, query or header. ${there}`,
    )
}

/** @throws DescriptionError */
function requireBound(file: string, { chosenByClients }: ServiceFromDescription): void {
  if (chosenByClients.length === 0) return
  const places = new Map(chosenByClients.map((each) => [placeText(each.place), each]))
  const options = [...places].flatMap(([text, { isPlaceable }]) => [
    ...(isPlaceable ? [`  --business-in ${shellWord(text)}`] : []),
    `  --not-business ${shellWord(text)}`,
  ])
  throw new DescriptionError(
    [
      `in ${file} these operations take the code of the business from where only the client writes it, so a client could choose the business:`,
      ...chosenByClients.map((note) => noteText(file, note)),
      'Nothing was written. Add one of the options of each place: --business-in, and Postern puts the business there; --not-business, if it is no business, and the client goes on to write it:',
      ...options,
      'If the service does not read it there, take it out of the description or mark it readOnly.',
    ].join('\n'),
  )
}

/** @throws DescriptionError for what `--shared` says and no operation without a business is */
function requireShared(
  { shared }: DescriptionOptions,
  chosen: readonly DescribedOperation[],
  { operations }: ServiceFromDescription,
): void {
  for (const each of shared) {
    const all = operations.filter((_operation, at) => chosen[at] !== undefined && isOf(chosen[at], each))
    if (all.some((operation) => operation.shared && operation.action !== undefined)) continue
    const [bound] = all.filter(({ business }) => business.length > 0)
    throw new DescriptionError(
      bound === undefined
        ? `--shared ${each}: its operations are left out, so nobody can call them`
        : `--shared ${each}: ${bound.operation} has a business already (${bound.business.join(', ')})`,
    )
  }
}

/** An address can be a path alone: then it is below `usual`. */
function addressOf(address: string | undefined, usual: string): string {
  const url = URL.parse(address ?? '', `${usual}/`)
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  return url !== null && isHttp ? `${url.origin}${url.pathname.replace(/\/$/, '')}` : usual
}

/** A description that was read once, to be looked at in several ways. */
export interface OpenDescription {
  readonly places: () => ProposedPlaces
  /** An address to propose for the service. */
  readonly upstream: string
  /** @throws DescriptionError if nothing of it can be served, or an option names what is not there */
  readonly described: (options: DescriptionOptions) => DescribedApi
}

/** @throws DescriptionError for what an option says and no operation is of */
function requireOperations(
  file: string,
  operations: readonly DescribedOperation[],
  option: 'only' | 'shared',
  given: readonly string[],
): void {
  const unknown = given.find((each) => !operations.some((operation) => isOf(operation, each)))
  if (unknown === undefined) return
  const tags = new Set(operations.flatMap((each) => each.tags))
  throw new DescriptionError(
    `--${option} ${unknown}: ${file} has no such operation. ${tags.size === 0 ? 'It has no tags' : `Its tags are ${[...tags].join(', ')}`}`,
  )
}

/**
 * @param usual the address of a service that names none
 * @throws DescriptionError if it cannot be read
 */
export function openDescription(file: string, only: readonly string[], usual: string): OpenDescription {
  const description = readDescription(file)
  const { document } = description
  requireOperations(file, operationsOf(document), 'only', only)
  return {
    places: () => {
      const all = placesOf(chosenOperations(document, only), document)
      const names = folded(USUAL.business)
      return { all, usual: all.filter(({ kind, name }) => kind !== 'body' && names.has(foldParameter(name))) }
    },
    upstream: addressOf(addressIn(document).address, usual),
    described: (options) => describe(file, description, options),
  }
}

function describe(file: string, description: Description, options: DescriptionOptions): DescribedApi {
  const { places, fund, only, shared, notBusiness } = options
  const named = places?.map(lastName)
  const targets = {
    business: folded(named ?? USUAL.business),
    fund: folded(fund ?? USUAL.fund),
    places,
    notBusiness,
  }
  const chosen = chosenOperations(description.document, only)
  requireOperations(file, chosen, 'shared', shared)
  const described = describeService(description, targets, { only, shared })
  const { service, notes } = described
  const texts = notes.map((note) => noteText(file, note))
  if (service.actions.length === 0)
    throw new DescriptionError([`${file} describes no operation that can be served`, ...texts].join('\n'))
  requireUsed(file, options, described)
  requireBound(file, described)
  requireShared(options, chosen, described)
  const kinds = [...Map.groupBy(notes, ({ kind }) => kind).values()].map((each) => kindText(file, each))
  return { service, notes: texts, kinds, operations: described.operations }
}
