import { namesBusiness, namesSubject } from '../../gateway/backends/forward/schema/named-values.ts'
import type { AddedUpgrade } from '../../gateway/backends/kinds.ts'
import { backendUnder } from '../../gateway/backends/schema.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import { compileScopes } from '../../base/config/scopes/schema.ts'
import type { Directory } from '../../identity/directory/records/compile.ts'
import { mayHold } from '../../identity/directory/records/holdings.ts'
import { compileScopeRule, satisfies } from '../../gateway/actions/action-table.ts'
import type { ActionConfig, OperationConfig } from '../../gateway/actions/schema.ts'
import { isSafe } from '../../base/http/head/head.ts'
import { isMachine } from '../../identity/grants/grants.ts'
import type { SharedStoreKinds } from './shared-stores.ts'
import type { Shared } from './added-checks.ts'
import { descriptors } from '../../base/files/descriptors.ts'
import { sectionOf } from './business-values.ts'
import type { Configuration } from './configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'

// Entries that nothing refers to: often a name that was misspelt elsewhere, or left over.

const operationsIn = ({ actions }: Pick<Configuration, 'actions'>) =>
  actions.flatMap(({ methods }) => Object.values(methods))

/** The scope values of which actions and areas need one. */
const neededScopes = (configuration: Configuration): ReadonlySet<string> =>
  new Set([
    ...operationsIn(configuration).flatMap(({ scopes }) => [...(scopes.any ?? []), ...(scopes.all ?? [])]),
    ...Object.values(configuration.areas).flatMap(({ scopes = [] }) => scopes),
  ])

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

/**
 * Warns of templates that name the user where a machine of the configuration reaches the operation (C6.1.5a): such a call
 * is 500. Once for each machine and section.
 */
export function warnOfMissingSubjects(
  configuration: Configuration,
  { clients }: Directory,
  problems: Problems,
): void {
  const machines = [...clients.values()].filter((client) => isMachine(client) && mayHold(client))
  if (machines.length === 0) return
  const catalogue = compileScopes(configuration.scopes, problems)
  const warned = new Set<string>()
  for (const { path, described, rule } of operationsWithSubject(configuration, catalogue))
    for (const { id, scopes } of machines) {
      const key = [...path, id].join(' ')
      if (warned.has(key) || !satisfies(catalogue.close(scopes), rule)) continue
      warned.add(key)
      problems.warn(
        path,
        `names {subject}, and the machine "${id}" reaches ${described}: a machine is no user, so its calls are 500`,
        'leave {subject} out, or take the scope from the machine',
      )
    }
}

function* operationsWithSubject({ actions, areas, backends }: Configuration, catalogue: Catalogue) {
  for (const [at, { area, action, methods }] of actions.entries())
    for (const [method, { scopes, upstream = {} }] of Object.entries(methods)) {
      const name = upstream.backend ?? areas[area]?.backend ?? ''
      const section = sectionOf(backends, name)
      if (section === undefined || !namesSubject(section, upstream)) continue
      const isOwn = namesSubject({}, upstream)
      const path: KeyPath = isOwn ? ['actions', at, 'methods', method, 'upstream'] : ['backends', name]
      const rule = compileScopeRule(scopes, areas[area], catalogue)
      yield { path, described: `${method} ${area}/${action}`, rule }
    }
}

/** The backends that answer calls, and those that they run around. */
function usedBackends({ areas, backends, ...rest }: Configuration): ReadonlySet<string> {
  const used = new Set([
    ...Object.values(areas).map(({ backend }) => backend),
    ...operationsIn(rest).flatMap(({ upstream }) => upstream?.backend ?? []),
  ])
  // A Set may grow while it is iterated.
  for (const name of used) {
    const config = backends[name]
    const under = config && backendUnder(config)
    if (under !== undefined) used.add(under)
  }
  return used
}

export function warnOfUnusedBackends(configuration: Configuration, problems: Problems): void {
  const used = usedBackends(configuration)
  for (const name of Object.keys(configuration.backends))
    if (!used.has(name)) problems.warn(['backends', name], 'is not used: no area and no action names it')
}

/** The keys of an operation that authors of clients want to read. */
const WANTED = ['summary', 'description', 'data', 'examples'] as const

/** Warns of each operation that leaves out what clients could know of it (C11.3.7). */
export function warnOfUndocumented(
  { actions }: Pick<Configuration, 'actions'>,
  upgrade: AddedUpgrade | undefined,
  problems: Problems,
): void {
  for (const [index, { methods }] of actions.entries())
    for (const [method, operation] of Object.entries(methods)) {
      const missing = wantedOf(operation, upgrade).filter((key) => operation[key] === undefined)
      if (missing.length > 0)
        problems.warn(
          ['actions', index, 'methods', method],
          `does not tell clients its ${missing.join(', ')}`,
        )
    }
}

/** Answers without an envelope have no `Data` to be described. */
const wantedOf = (
  operation: OperationConfig,
  upgrade: AddedUpgrade | undefined,
): readonly (typeof WANTED)[number][] =>
  operation.produces !== undefined || upgrade?.isAllowed(operation) === true
    ? ['summary', 'description']
    : WANTED

/**
 * Warns where data may change without a record in the audit trail (C12.1.1): of each operation that leaves none, and once
 * if no trail is kept although operations need it.
 */
export function warnOfUnrecordedChanges(
  configuration: Configuration,
  problems: Problems,
  { addedBackends, trail }: Pick<Shared, 'addedBackends' | 'trail'>,
): void {
  const operations = configuration.actions.flatMap(placedOperations)
  for (const { path, operation } of operations)
    if (operation.audit === 'none') problems.warn([...path, 'audit'], warningOf(operation))
  const needs = operations.filter((each) => needsRecord(each, addedBackends.upgrade))
  if (needs.length > 0 && trail?.folderOf(configuration) === undefined)
    problems.warn(
      ['audit'],
      `is off: ${needs.length} operation${needs.length > 1 ? 's' : ''} would leave a record of each call`,
      trail === undefined ? 'the extension `audit` is not there' : adviceToKeep(configuration),
    )
}

const adviceToKeep = (configuration: Configuration): string =>
  isSidecar(configuration) ? 'give it a `folder`' : 'leave out `enabled: false`'

const warningOf = ({ auditReason }: OperationConfig): string =>
  `is none: calls leave no record${auditReason === undefined ? '' : `, since ${JSON.stringify(auditReason)}`}`

interface Placed {
  readonly path: KeyPath
  readonly method: string
  readonly operation: OperationConfig
}

const placedOperations = ({ methods }: ActionConfig, index: number): readonly Placed[] =>
  Object.entries(methods).map(([method, operation]) => ({
    path: ['actions', index, 'methods', method],
    method,
    operation,
  }))

function needsRecord({ method, operation }: Placed, upgrade: AddedUpgrade | undefined): boolean {
  const { audit, upstream } = operation
  if (audit !== undefined) return audit === 'intent'
  return !isSafe(method) || !isSafe(upstream?.method ?? method) || upgrade?.isAllowed(operation) === true
}

type BackendConfig = Configuration['backends'][string]
type Forwarding = Extract<BackendConfig, { kind: 'http' | 'stream' }>
type OperationUpstream = NonNullable<
  NonNullable<Configuration['actions'][number]['methods']['GET']>['upstream']
>

/**
 * Warns of services that cannot know which business a call is about: they would answer with anybody's data (C11.6.1). One
 * warning for each operation that says itself how its calls are sent, and one for each backend whose own section decides.
 * Memory and modules are given the business by name, and code around a forwarder may send it: these get no warning.
 */
export function warnOfUnknownBusiness({ backends, areas, actions }: Configuration, problems: Problems): void {
  const places = new Map<string, KeyPath>()
  for (const [at, { area, methods }] of actions.entries())
    for (const [method, { upstream = {} }] of Object.entries(methods)) {
      const name = upstream.backend ?? areas[area]?.backend ?? ''
      const backend = backends[name]
      if (!isForwarding(backend) || sendsBusiness(backend, upstream)) continue
      const path = decidesItself(upstream) ? ['actions', at, 'methods', method] : ['backends', name]
      places.set(path.join(' '), path)
    }
  for (const path of places.values())
    problems.warn(
      path,
      'tells the service nowhere which business is meant: neither path, query, headers nor a written `identity` do',
      'add {business} to one of them, or write `identity: headers` if the service goes by X-Postern-Business',
    )
}

const isForwarding = (backend: BackendConfig | undefined): backend is Forwarding =>
  backend?.kind === 'http' || backend?.kind === 'stream'

/** Whether an operation differs from its backend in what could name a business. */
const decidesItself = (upstream: OperationUpstream): boolean =>
  DECIDING.some((key) => Object.hasOwn(upstream, key))

const DECIDING = ['path', 'query', 'headers', 'auth', 'body', 'forwardAuthorization'] as const

/** The headers that are sent by default mean nothing to a service that was never made to read them. */
function sendsBusiness(backend: Forwarding, upstream: OperationUpstream): boolean {
  const { identity } = backend
  if (identity === 'headers' || identity === 'token') return true
  if (upstream.forwardAuthorization ?? (upstream.auth === undefined && backend.forwardAuthorization))
    return true
  // Without a template the client's path is sent, which has the business.
  if ((upstream.path ?? backend.path) === undefined) return true
  return namesBusiness(backend, upstream)
}

/** Connections to one target: the further attempts have some of their own (gateway/upstream/pool.ts). */
const ofTarget = (maxConnections: number): number => maxConnections + Math.ceil(maxConnections / 8)

/** Files and threads that a process has open without a call. */
const OF_ITS_OWN = 64

/**
 * Warns where a process could open more than it may (C11.1.1): all connections to services that the backends allow, each for a
 * connection of a client, those to the store, and what is kept. Where the system does not tell the limit, there is nothing to compare.
 */
export function warnOfFewDescriptors(
  { backends, store }: Pick<Configuration, 'backends' | 'store'>,
  problems: Problems,
  stores: SharedStoreKinds,
  { limit, kept } = descriptors(),
): void {
  let upstream = 0
  for (const backend of Object.values(backends))
    if ('maxConnections' in backend)
      upstream += (backend.targets?.length ?? 1) * ofTarget(backend.maxConnections)
  const ofStore = stores.get(store.kind)?.connections(store) ?? 0
  const needed = 2 * upstream + ofStore + OF_ITS_OWN + kept
  if (upstream === 0 || needed <= limit) return
  problems.warn(
    ['backends'],
    `allow ${upstream} connections to services in each process, so with those of clients and the store it may need ${needed} files and connections, and it may open ${limit} here`,
    'raise that limit (`ulimit -n`, `LimitNOFILE` of systemd, `--ulimit nofile` of a container), or lower `maxConnections`',
  )
}
