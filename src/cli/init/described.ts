/** `--from`: the service as its description has it, and what of it a configuration cannot say. */
import { DescriptionError, readDescription } from './openapi/read-description.ts'
import { describeService, type Note } from './openapi/describe-service.ts'
import type { DescribedService } from './service.ts'

export interface Described {
  readonly service: DescribedService
  /** A line for each. */
  readonly notes: readonly string[]
  /** An address to propose for the service. */
  readonly upstream: string
}

/** Parameters of paths that are codes, unless options name others. */
const USUAL = {
  business: ['business', 'businessId', 'businessCode', 'business_id', 'tenant', 'tenantId', 'tenant_id'],
  fund: ['fund', 'fundId', 'fundCode', 'fund_id'],
} as const

const lowerCase = (names: readonly string[]): ReadonlySet<string> =>
  new Set(names.map((name) => name.toLowerCase()))

const noteText = (file: string, { line, what }: Note): string =>
  `${file}${line === undefined ? '' : `:${line}`}  ${what}`

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
  parameters: {
    readonly business?: readonly string[] | undefined
    readonly fund?: readonly string[] | undefined
  },
  usual: string,
): Promise<Described> {
  const targets = {
    business: lowerCase(parameters.business ?? USUAL.business),
    fund: lowerCase(parameters.fund ?? USUAL.fund),
  }
  const { service, notes, address } = describeService(await readDescription(file), targets)
  const texts = notes.map((note) => noteText(file, note))
  if (service.actions.length === 0)
    throw new DescriptionError([`${file} describes no operation that can be served`, ...texts].join('\n'))
  return { service, notes: texts, upstream: addressOf(address, usual) }
}
