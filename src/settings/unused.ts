/** Warns of entries that nothing refers to: often a name that was misspelt elsewhere, or left over. */
import { backendUnder } from '../backends/schema.ts'
import type { Problems } from '../config/problems.ts'
import { compileScopes } from '../config/scopes/schema.ts'
import type { Directory } from '../directory/compile.ts'
import type { Configuration } from './configuration.ts'

const operationsOf = ({ actions }: Pick<Configuration, 'actions'>) =>
  actions.flatMap(({ methods }) => Object.values(methods))

/** The scope values of which actions and areas need one. */
const neededScopes = (configuration: Configuration): ReadonlySet<string> =>
  new Set([
    ...operationsOf(configuration).flatMap(({ scopes }) => [...(scopes.any ?? []), ...(scopes.all ?? [])]),
    ...Object.values(configuration.areas).flatMap(({ scopes = [] }) => scopes),
  ])

/** The scope values that somebody may be given. */
const givenScopes = ({ issuers }: Configuration, { clients, roles }: Directory): ReadonlySet<string> =>
  new Set([
    ...[...clients.values()].flatMap(({ scopes }) => scopes),
    ...[...roles.values()].flatMap(({ scopes }) => scopes),
    ...issuers.flatMap(({ scopeMap = {} }) => Object.values(scopeMap).flat()),
  ])

/** Warns of scope values that open no action and that no client, role or issuer gives. Clients of the store are not looked at. */
export function warnOfUnusedScopes(
  configuration: Configuration,
  directory: Directory,
  problems: Problems,
): void {
  const catalogue = compileScopes(configuration.scopes, problems)
  const needed = neededScopes(configuration)
  const given = givenScopes(configuration, directory)
  for (const name of Object.keys(configuration.scopes)) {
    const opens = !needed.isDisjointFrom(catalogue.close([name]))
    if (!opens && !given.has(name))
      problems.warn(['scopes', name], 'is not used: no action needs it, and no client or role has it')
  }
}

/** The backends that answer calls, and those that modules in use run around. */
function usedBackends({ areas, backends, ...rest }: Configuration): ReadonlySet<string> {
  const used = new Set([
    ...Object.values(areas).map(({ backend }) => backend),
    ...operationsOf(rest).flatMap(({ upstream }) => upstream?.backend ?? []),
  ])
  // A Set may grow while it is iterated.
  for (const name of used) {
    const config = backends[name]
    const under = config && backendUnder(config)
    if (under !== undefined) used.add(under)
  }
  return used
}

/** Warns of backends that no area and no action names. */
export function warnOfUnusedBackends(configuration: Configuration, problems: Problems): void {
  const used = usedBackends(configuration)
  for (const name of Object.keys(configuration.backends))
    if (!used.has(name)) problems.warn(['backends', name], 'is not used: no area and no action names it')
}
