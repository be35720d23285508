/** Addresses that are values of businesses (C8.7): only addresses that the configuration allows by `origins` are called. */
import { isIP } from 'node:net'
import { parseTemplate, solePlaceholder } from '../../templates/parse.ts'
import { parseUpstreamAddress, UPSTREAM_PATTERN, type UpstreamAddress } from '../../../upstream/socket.ts'

/** For the schema: an address, or one placeholder. */
export const TARGET_PATTERN = `${UPSTREAM_PATTERN}|^\\{[^{}\\s]+\\}$`

/** `https://*.erp.internal:*` */
export interface OriginPattern {
  readonly protocol: string
  /** In lower case; `*` is any one. An IP address has no `*`. */
  readonly labels: readonly string[]
  /** Empty for the scheme's own; `*` is any. */
  readonly port: string
}

const PATTERN =
  /^(?<scheme>https?):\/\/(?<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.*_-]+)(?::(?<port>\*|[0-9]{1,5}))?$/
const LABEL = /^(?:\*|[a-z0-9_-]+)$/

/** @returns what is wrong with it, if anything is */
export function parseOriginPattern(text: string): OriginPattern | string {
  const { scheme = '', host = '', port = '' } = PATTERN.exec(text)?.groups ?? {}
  if (host === '') return 'must be an origin, such as "https://*.erp.internal" or "https://erp.internal:*"'
  const lower = host.toLowerCase()
  const url = URL.parse(
    `${scheme}://${lower.replaceAll('*', 'x')}${port === '' || port === '*' ? '' : `:${port}`}`,
  )
  if (url?.hostname !== lower.replaceAll('*', 'x'))
    return `must be written as URLs are read${url ? `: ${url.host}` : ''}`
  const isAddress = isAddressOf(url)
  if (lower.includes('*') && (isAddress || isIP(lower.replaceAll('*', '1')) !== 0))
    return 'has a * in an IP address; it stands for a part of a name only'
  const labels = isAddress ? [lower] : lower.split('.')
  if (!isAddress && !labels.every((label) => LABEL.test(label)))
    return 'has a * beside other characters; it stands for one whole part of a name between dots'
  return { protocol: url.protocol, labels, port: port === '*' ? port : url.port }
}

const isAddressOf = ({ hostname }: URL): boolean => hostname.startsWith('[') || isIP(hostname) !== 0

function isOf({ protocol, labels, port }: OriginPattern, url: URL): boolean {
  if (url.protocol !== protocol || (port !== '*' && url.port !== port)) return false
  const given = isAddressOf(url) ? [url.hostname] : url.hostname.split('.')
  return (
    given.length === labels.length &&
    given.every((label, at) =>
      labels[at] === '*' ? label !== '' && !isAddressOf(url) : label === labels[at],
    )
  )
}

/** No user information, query or fragment, and nothing that two readers of URLs take for different things. */
const WRITTEN = /^https?:\/\/[^\s\x00-\x20\x7f/@#?\\%]+(?:\/[^\s\x00-\x20\x7f#?\\%]*)?$/

/**
 * The target that a value names. The URL parser's result is compared, and only that is connected to.
 * @returns what is wrong with it, as a verb and what follows; without the value, which may be a secret
 */
export function parseTargetValue(text: string, origins: readonly OriginPattern[]): UpstreamAddress | string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) return 'is no http or https URL'
  if (!WRITTEN.test(text))
    return 'has user information, a query, a fragment, an escape, a blank or a backslash'
  const address = parseUpstreamAddress(text)
  if (address === undefined) return 'has dots, a semicolon or an empty part in its path'
  return origins.some((origin) => isOf(origin, url))
    ? address
    : 'is of an origin that `origins` does not list'
}

/** A value of businesses that says where calls go, and what is wrong with a text for it, if anything is. */
interface TargetValue {
  readonly name: string
  readonly backend: string
  readonly problemOf: (text: string) => string | undefined
}

interface ForwardingSection {
  readonly target?: string | undefined
  readonly origins?: readonly string[] | undefined
}

/** The target values in sections as they were loaded. A problem of a section itself is reported where it is compiled. */
export function targetValuesOf(backends: Readonly<Record<string, object>>): readonly TargetValue[] {
  return Object.entries(backends).flatMap(([backend, section]) => {
    const { target = '', origins = [] }: ForwardingSection = section
    const template = target.startsWith('{') ? parseTemplate(target) : ''
    const to = typeof template === 'string' ? undefined : solePlaceholder(template)?.to
    if (to?.kind !== 'value') return []
    const patterns = origins.map(parseOriginPattern).filter((each) => typeof each !== 'string')
    const problemOf = (text: string): string | undefined => {
      const address = parseTargetValue(text, patterns)
      return typeof address === 'string' ? address : undefined
    }
    return [{ name: to.name, backend, problemOf }]
  })
}

/**
 * The problems of a business’s values that say where calls go: no call may go there.
 * @returns by the name of the value, a verb and what follows; without the values, which may be secrets
 */
export const problemsOfValues = (
  values: readonly TargetValue[],
  texts: Readonly<Record<string, string | undefined>>,
): readonly (readonly [name: string, problem: string])[] =>
  values.flatMap(({ name, backend, problemOf }) => {
    const text = Object.hasOwn(texts, name) ? texts[name] : undefined
    const problem = text === undefined ? undefined : problemOf(text)
    return problem === undefined ? [] : [[name, `${problem}: the backend ${backend} takes it as its target`]]
  })
