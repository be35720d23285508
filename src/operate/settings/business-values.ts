/** Values of businesses (C8.7): which ones operations name, who lacks one, and for whom an operation is sent the same. */
import {
  namedValues,
  namesValues,
  type TemplateSections,
} from '../../gateway/backends/forward/schema/named-values.ts'
import { problemsOfValues, targetValuesOf } from '../../gateway/backends/forward/schema/origins.ts'
import { backendUnder } from '../../gateway/backends/schema.ts'
import { didYouMeanOfFew } from '../../base/config/problem-text.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import { NO_VALUES } from '../../base/contracts/people/places.ts'
import type { Directory } from '../../identity/directory/records/compile.ts'
import { isReportOnly } from '../../gateway/actions/action-table.ts'
import type { Configuration } from './configuration.ts'

type Sections = Pick<Configuration, 'actions' | 'areas' | 'backends'>

/** Something that names values of businesses. */
interface NamedBy {
  /** The section that names them. */
  readonly path: KeyPath
  /** The operation's name for messages: `GET fund-data/fund-list`. */
  readonly described: string
  readonly names: ReadonlySet<string>
}

/** The section of a backend that forwards; for a backend that runs around another, the section of the other. */
export function sectionOf(backends: Configuration['backends'], name: string): TemplateSections | undefined {
  const config = backends[name]
  const under = config && backendUnder(config)
  const found = under === undefined ? config : backends[under]
  return found?.kind === 'http' || found?.kind === 'stream' ? found : undefined
}

/** Everything that names a value: operations, and areas that forward calls of no operation, too. */
function* eachNaming({ actions, areas, backends }: Sections): Generator<NamedBy> {
  for (const [at, { area, action, methods }] of actions.entries())
    for (const [method, { upstream = {} }] of Object.entries(methods)) {
      const name = upstream.backend ?? areas[area]?.backend ?? ''
      const section = sectionOf(backends, name)
      const names = section && namedValues(section, upstream)
      if (names === undefined || names.size === 0) continue
      const path = namesValues(upstream) ? ['actions', at, 'methods', method, 'upstream'] : ['backends', name]
      yield { path, described: `${method} ${area}/${action}`, names }
    }
  for (const [area, config] of Object.entries(areas)) {
    const { backend } = config
    const section = isReportOnly(config) ? sectionOf(backends, backend) : undefined
    const names = section && namedValues(section)
    if (names !== undefined && names.size > 0)
      yield { path: ['backends', backend], described: `the report-only area ${area}`, names }
  }
}

/** Each value that is named, and what names it first. */
type NamedValues = ReadonlyMap<string, string>

export function namedValuesOf(configuration: Sections): NamedValues {
  const named = new Map<string, string>()
  for (const { names, described } of eachNaming(configuration))
    for (const name of names) if (!named.has(name)) named.set(name, described)
  return named
}

/** How many problems are reported: a generated directory may have one for each business. */
const MOST = 20

/** Reports businesses of the configuration that lack a value which is named. Those of the store are refused when they are added. */
export function reportMissingValues(
  configuration: Sections & Pick<Configuration, 'directory'>,
  { businesses }: Pick<Directory, 'businesses'>,
  problems: Problems,
): void {
  const named = namedValuesOf(configuration)
  if (named.size === 0) return
  let count = 0
  for (const [code, { values: { texts } = NO_VALUES }] of businesses)
    for (const [name, by] of named) {
      if (Object.hasOwn(texts, name) || ++count > MOST) continue
      problems.error(
        pathOf(configuration, code),
        `lacks a value: business "${code}" has no "${name}", which ${by} names as {business.${name}}`,
        didYouMeanOfFew(name, Object.keys(texts)),
      )
    }
  if (count > MOST)
    problems.error(
      ['directory'],
      `lacks ${count - MOST} more values that operations use and businesses do not have`,
    )
}

/** Reports businesses of the configuration whose values would lead calls to an address that no `origins` allows. */
export function reportWrongTargets(
  configuration: Pick<Configuration, 'backends' | 'directory'>,
  { businesses }: Pick<Directory, 'businesses'>,
  problems: Problems,
): void {
  const targets = targetValuesOf(configuration.backends)
  if (targets.length === 0) return
  const wrong = [...businesses].flatMap(([code, { values: { texts } = NO_VALUES }]) =>
    problemsOfValues(targets, texts).map((each) => [code, ...each] as const),
  )
  for (const [code, name, problem] of wrong.slice(0, MOST))
    problems.error(pathOf(configuration, code), `has a value "${name}" of business "${code}" that ${problem}`)
  if (wrong.length > MOST)
    problems.error(['directory'], `has ${wrong.length - MOST} more values that are no targets`)
}

const pathOf = ({ directory }: Pick<Configuration, 'directory'>, code: string): KeyPath =>
  Object.hasOwn(directory.businesses, code)
    ? ['directory', 'businesses', code]
    : ['directory', 'files', 'businesses']

/**
 * Warns of operations that send the same for two businesses of the configuration, wherever they name values: one of them gets
 * the other one's data. Once for each section that says how calls are sent. No message shows a value.
 */
export function warnOfSameValues(
  configuration: Sections,
  { businesses }: Pick<Directory, 'businesses'>,
  problems: Problems,
): void {
  const known = new Map<string, readonly string[] | undefined>()
  const warned = new Set<string>()
  for (const { path, names } of eachNaming(configuration)) {
    const sorted = [...names].sort()
    const all = JSON.stringify(sorted)
    const same = known.has(all) ? known.get(all) : sameOf(sorted, businesses)
    known.set(all, same)
    const key = `${path.join(' ')} ${all}`
    if (same === undefined || warned.has(key)) continue
    warned.add(key)
    problems.warn(
      path,
      `sends the same for the businesses ${listed(same)}: they have the same ${listed(sorted.map((name) => `{business.${name}}`))}`,
      'give each of them values of its own',
    )
  }
}

/** Businesses whose values of these names are all the same, if there are any. */
function sameOf(
  names: readonly string[],
  businesses: Directory['businesses'],
): readonly string[] | undefined {
  const byValues = Map.groupBy(businesses, ([, { values: { texts } = NO_VALUES }]) =>
    JSON.stringify(names.map((name) => texts[name])),
  )
  const found = [...byValues.values()].find((some) => some.length > 1)
  return found?.map(([code]) => code)
}

/** How many names a message lists. */
const TOLD = 5

const listed = (names: readonly string[]): string => {
  if (names.length > TOLD) return `${names.slice(0, TOLD).join(', ')} and ${names.length - TOLD} more`
  const last = names.at(-1) ?? ''
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`
}
