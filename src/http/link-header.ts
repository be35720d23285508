/** One value of a Link header (RFC 8288 §3). */
export interface LinkValue {
  /** What stands between `<` and `>`. */
  readonly target: string
  readonly parameters: readonly LinkParameter[]
}

export interface LinkParameter {
  readonly name: string
  /** Unquoted; empty if it has none. */
  readonly value: string
}

const WHITE = '[ \\t]*'
const START = new RegExp(`(?:${WHITE},)*${WHITE}<([^<>]*)>`, 'y')
const PARAMETER = new RegExp(
  `${WHITE};${WHITE}(?:([!#$%&'*+\\-.^_\`|~0-9A-Za-z]+)(?:${WHITE}=${WHITE}(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s";,]*)))?)?`,
  'y',
)
const END = new RegExp(`${WHITE}(?:,|$)`, 'y')
const NOTHING_MORE = /[ \t,]*$/y

/** The values of a Link header; undefined for one that cannot be read to its end: nobody knows what its rest means. */
export function parseLink(header: string): readonly LinkValue[] | undefined {
  const links: LinkValue[] = []
  let at = 0
  while (matchAt(NOTHING_MORE, header, at) === undefined) {
    const target = matchAt(START, header, at)
    if (target === undefined) return undefined
    at = START.lastIndex
    const parameters: LinkParameter[] = []
    for (let found = matchAt(PARAMETER, header, at); found; found = matchAt(PARAMETER, header, at)) {
      at = PARAMETER.lastIndex
      const [, name, quoted, token] = found
      if (name !== undefined)
        parameters.push({
          name: name.toLowerCase(),
          value: quoted?.replaceAll(/\\(.)/g, '$1') ?? token ?? '',
        })
    }
    if (matchAt(END, header, at) === undefined) return undefined
    at = END.lastIndex
    links.push({ target: target[1] ?? '', parameters })
  }
  return links
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at
  return pattern.exec(text) ?? undefined
}

/** A Link header of these values. */
export const writeLink = (links: readonly LinkValue[]): string =>
  links
    .map(({ target, parameters }) => [`<${target}>`, ...parameters.map(parameterText)].join('; '))
    .join(', ')

/** Of parameters such as `title*`, which are never quoted (RFC 8187 §3.2.1). */
const EXTENDED_VALUE = /^[!#$%&'+.^_`|~0-9A-Za-z-]+$/

function parameterText({ name, value }: LinkParameter): string {
  if (value === '') return name
  if (name.endsWith('*') && EXTENDED_VALUE.test(value)) return `${name}=${value}`
  return `${name}="${value.replaceAll(/["\\]/g, '\\$&')}"`
}
