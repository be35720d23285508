/** `--from`: the service as its description has it, and what of it a configuration cannot say. */
import type { DescribedService } from './configuration-text.ts'
import { describeService, type Note, type ServiceFromDescription } from './openapi/describe-service.ts'
import { DescriptionError, readDescription } from './openapi/read-description.ts'
import { foldParameter } from './openapi/targets.ts'

export interface Described {
  readonly service: DescribedService
  /** A line for each. */
  readonly notes: readonly string[]
  /** An address to propose for the service. */
  readonly upstream: string
}

/** Parameters that are codes, unless options name others. */
const USUAL = {
  business: ['business', 'businessId', 'businessCode', 'tenant', 'tenantId'],
  fund: ['fund', 'fundId', 'fundCode'],
} as const

const folded = (names: readonly string[]): ReadonlySet<string> => new Set(names.map(foldParameter))

const noteText = (file: string, { line, what }: Note): string =>
  `${file}${line === undefined ? '' : `:${line}`}  ${what}`

/** What options name as codes; undefined: the usual names. */
interface GivenParameters {
  readonly business?: readonly string[] | undefined
  readonly fund?: readonly string[] | undefined
}

/** Whoever misspells a parameter would let clients choose its value. @throws DescriptionError */
function requireUsed(file: string, given: GivenParameters, { parameters }: ServiceFromDescription): void {
  const known = folded(parameters)
  for (const [kind, names] of Object.entries(given) as [string, GivenParameters['business']][])
    for (const name of names ?? [])
      if (!known.has(foldParameter(name)))
        throw new DescriptionError(
          `--${kind}-parameter ${name}: no operation of ${file} has such a parameter in path, query or header. ${
            parameters.length === 0 ? 'They have none' : `They have ${parameters.join(', ')}`
          }`,
        )
}

/** @throws DescriptionError */
function requireBound(file: string, { chosenByClients }: ServiceFromDescription): void {
  if (chosenByClients.length === 0) return
  throw new DescriptionError(
    [
      `in ${file} these operations take the code of the business from where only the client writes it, so a client could choose the business:`,
      ...chosenByClients.map((note) => noteText(file, note)),
      'Nothing was written. If the service does not read it there, take it out of the description or mark it readOnly. If it is no code of a business, name the parameters that are with --business-parameter.',
    ].join('\n'),
  )
}

/** An address can be a path alone: then it is below `usual`. */
function addressOf(address: string | undefined, usual: string): string {
  const url = URL.parse(address ?? '', `${usual}/`)
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  return url !== null && isHttp ? `${url.origin}${url.pathname.replace(/\/$/, '')}` : usual
}

/**
 * @param usual the address of a service that names none
 * @throws DescriptionError if it cannot be read, or nothing of it can be served
 */
export async function readDescribed(
  file: string,
  parameters: GivenParameters,
  usual: string,
): Promise<Described> {
  const targets = {
    business: folded(parameters.business ?? USUAL.business),
    fund: folded(parameters.fund ?? USUAL.fund),
  }
  const described = describeService(await readDescription(file), targets)
  const { service, notes, address } = described
  const texts = notes.map((note) => noteText(file, note))
  if (service.actions.length === 0)
    throw new DescriptionError([`${file} describes no operation that can be served`, ...texts].join('\n'))
  requireUsed(file, parameters, described)
  requireBound(file, described)
  return { service, notes: texts, upstream: addressOf(address, usual) }
}
