import type { KeyPath, Problems } from '../../base/config/problems.ts'
import type { Directory } from '../../identity/directory/records/compile.ts'
import { Hasher, hashSecret } from '../../identity/directory/hashing/hasher.ts'
import { isShared } from '../../base/contracts/records/store.ts'
import { isLoopback, splitListenAddress } from '../../base/kernel/listen-address.ts'
import { countWorkers } from '../../base/contracts/processes/worker-pool.ts'
import type { Configuration } from './configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'

/** Secrets that the documentation prints (C10), so everybody knows them. */
const CLIENT_SECRETS: Readonly<Record<string, string>> = {
  'acme-books': 'acme-books-secret',
  'globex-ledger': 'globex-ledger-secret',
  ledgerline: 'ledgerline-secret',
}
const PASSWORDS: Readonly<Record<string, string>> = {
  alice: 'alice-password',
  bob: 'bob-password',
  carol: 'carol-password',
}
const KNOWN_HASHES = new Set(Object.values(CLIENT_SECRETS).map(hashSecret))

type Suspect = readonly [name: string, secret: string, hash: string]

function suspects({ clients, users }: Directory): Suspect[] {
  const ofClients = Object.entries(CLIENT_SECRETS).flatMap(([id, secret]) =>
    (clients.get(id)?.secretHashes ?? []).map((hash): Suspect => [`client ${id}`, secret, hash]),
  )
  const ofUsers = Object.entries(PASSWORDS).flatMap(([name, secret]): Suspect[] => {
    const user = users.get(name)
    return user === undefined ? [] : [[`user ${name}`, secret, user.password]]
  })
  return [...ofClients, ...ofUsers]
}

/**
 * The entries of a directory that accept a demo secret, such as `client acme-books` or `user alice`, however it is
 * hashed. A service that other machines can reach must not start with one (C10, T7). Costs a dozen hashes at most.
 * Rejects as the hasher does.
 */
export async function findDemoSecrets(directory: Directory, hasher: Hasher): Promise<readonly string[]> {
  const renamed = [...directory.clients.values()]
    .filter((client) => client.secretHashes.some((hash) => KNOWN_HASHES.has(hash)))
    .map((client) => `client ${client.id}`)
  const opened: string[] = []
  for (const [name, secret, hash] of suspects(directory))
    if (await hasher.verify(secret, hash)) opened.push(name)
  return [...new Set([...renamed, ...opened])]
}

const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '')

/** Where the service can be reached beyond this machine: a listener or a public URL, with its path. */
export function nonLoopbackKeys(configuration: Configuration): KeyPath[] {
  const { listen, authUrl, baseUrl } = configuration.server
  const hosts: [string, string][] = [['listen', splitListenAddress(listen).host]]
  if (authUrl !== undefined) hosts.push(['authUrl', hostOf(authUrl)])
  if (baseUrl !== undefined) hosts.push(['baseUrl', hostOf(baseUrl)])
  return hosts.filter(([, host]) => !isLoopback(host)).map(([key]) => ['server', key])
}

function demoHashes(value: unknown, path: KeyPath): KeyPath[] {
  if (typeof value === 'string') return DEMO_HASHES.has(value) ? [path] : []
  if (Array.isArray(value)) return value.flatMap((item: unknown, index) => demoHashes(item, [...path, index]))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => demoHashes(item, [...path, key]))
}

function refuseDemoSecrets(configuration: Configuration, problems: Problems): void {
  if (configuration.demo) {
    const hint = '`postern init` writes a configuration of your own'
    problems.error(
      ['demo'],
      'holds secrets that everyone knows, and so serves a loopback listener only',
      hint,
    )
  }
  for (const path of demoHashes(configuration.directory, ['directory'])) {
    problems.error(
      path,
      'is a secret of the demo world, which everyone knows',
      'make one with `postern hash-password`',
    )
  }
}

const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::'])

function refuseHttpIssuer(configuration: Configuration, problems: Problems): void {
  const { authUrl, baseUrl, listen, tls } = configuration.server
  const urls = { authUrl, baseUrl }
  const { host } = splitListenAddress(listen)
  for (const [key, value] of Object.entries(urls)) {
    if (value === undefined && tls !== undefined && EVERY_ADDRESS.has(host)) {
      problems.error(
        ['server', key],
        `is derived from \`server.listen\`, and ${host} is no address for clients`,
        'write the https URL that clients use',
      )
      continue
    }
    const secure = value === undefined ? tls !== undefined || isLoopback(host) : value.startsWith('https:')
    if (secure || (value !== undefined && isLoopback(hostOf(value)))) continue
    const given =
      value === undefined ? 'is derived from a listener off loopback, as http' : 'is http off loopback'
    problems.error(
      ['server', key],
      `${given}: tokens and passwords would cross the network unencrypted`,
      'expected an https URL',
    )
  }
}

/** Refuses memory backends with several processes: each would have its own copy of the data. */
export function reportUnsharedMemory({ backends, workers, store }: Configuration, problems: Problems): void {
  const isOneOfMany = isShared(store)
  if (countWorkers(workers) === 1 && !isOneOfMany) return
  for (const [name, { kind }] of Object.entries(backends)) {
    if (kind !== 'memory') continue
    problems.error(
      ['backends', name, 'kind'],
      isOneOfMany
        ? 'is memory, which the nodes that share the store would not share'
        : 'is memory, which several workers would not share',
      isOneOfMany ? 'use another kind, or a store of kind sqlite' : 'use one worker',
    )
  }
}

/** A node draws an admin token of its own if none is given. Behind a balancer nobody would know which one to send. */
export function requireSharedAdminToken({ store, admin }: Configuration, problems: Problems): void {
  if (!isShared(store) || admin.token !== undefined || admin.tokens.length > 0) return
  problems.error(
    ['admin', 'token'],
    'is missing: each of the nodes that share the store would draw another one',
    'give `token`, or operators in `tokens`',
  )
}

/** Warns, at every check and start, of upstreams whose certificates are not verified (T7). */
export function warnOfUnverifiedUpstreams({ backends }: Configuration, problems: Problems): void {
  for (const [name, backend] of Object.entries(backends)) {
    if (!('tls' in backend) || backend.tls.verify !== 'off-insecure') continue
    problems.warn(
      ['backends', name, 'tls', 'verify'],
      'is off: anyone on the way to the upstream can read and change every call',
      'name its authority in `ca` instead',
    )
  }
}

export const reportOnlyAreas = ({ areas }: Pick<Configuration, 'areas'>): readonly string[] =>
  Object.keys(areas).filter((area) => areas[area]?.mode === 'report-only')

/** Kinds of backend with a service behind them that makes its own checks. */
const FORWARDING: ReadonlySet<string> = new Set(['http', 'stream'])

const ownBackends = ({ actions }: Pick<Configuration, 'actions'>, area: string): readonly string[] =>
  actions
    .filter((action) => action.area === area)
    .flatMap(({ methods }) => Object.values(methods).flatMap(({ upstream }) => upstream?.backend ?? []))

/** Warns of report-only areas at every check and start. Refuses them over a backend that makes no checks of its own. */
export function warnOfReportOnly(configuration: Configuration, problems: Problems): void {
  const { areas, backends } = configuration
  for (const area of reportOnlyAreas(configuration)) {
    const path = ['areas', area, 'mode']
    const names = [areas[area]?.backend ?? '', ...ownBackends(configuration, area)]
    const kind = names.map((name) => backends[name]?.kind).find((each) => each && !FORWARDING.has(each))
    if (kind !== undefined)
      problems.error(
        path,
        `is report-only over a backend of kind ${kind}, which checks nothing for itself`,
        'use a backend of kind http or stream',
      )
    else
      problems.warn(
        path,
        'is report-only: nothing is refused there, not even calls without a token',
        '`enforce` once Postern has been introduced',
      )
  }
}

/** Warns where calls that nobody has checked reach an upstream with credentials of ours, which it believes. */
export function warnOfUncheckedCredentials(configuration: Configuration, problems: Problems): void {
  for (const area of reportOnlyAreas(configuration))
    for (const path of sectionsWithAuth(configuration, area))
      problems.warn(
        [...path, 'auth'],
        `goes with all calls of the area ${area}, which is report-only: anybody is answered as Postern is`,
        '`enforce`, or `forwardAuthorization` until Postern has been introduced',
      )
}

/** The sections with `auth`, of the backends that answer an area's calls and of its operations. */
function sectionsWithAuth({ areas, backends, actions }: Configuration, area: string): readonly KeyPath[] {
  const operations = actions.flatMap((action, index) =>
    Object.entries(action.area === area ? action.methods : {}).map(([method, { upstream }]) => ({
      upstream,
      path: ['actions', index, 'methods', method, 'upstream'],
    })),
  )
  const names = new Set([areas[area]?.backend, ...operations.map(({ upstream }) => upstream?.backend)])
  const ofBackends = [...names].filter((name) => name !== undefined && 'auth' in (backends[name] ?? {}))
  return [
    ...ofBackends.map((name) => ['backends', name ?? '']),
    ...operations.filter(({ upstream }) => upstream?.auth !== undefined).map(({ path }) => path),
  ]
}

/**
 * Refuses demo secrets off loopback that were hashed anew or are in a file of the directory, where comparing hashes
 * does not find them (C10, T7). Does nothing if `problems` has failed: the directory is unusable then, or its demo
 * secrets are reported already.
 */
export async function reportOpenedDemo(
  configuration: Configuration,
  directory: Directory,
  problems: Problems,
): Promise<void> {
  if (problems.failed || nonLoopbackKeys(configuration).length === 0) return
  for (const who of await findDemoSecrets(directory, new Hasher())) {
    problems.error(
      ['directory'],
      `opens its ${who} to a secret of the demo world, which everyone knows`,
      'make one with `postern hash-password`',
    )
  }
}

export function reportDangers(configuration: Configuration, problems: Problems): void {
  if (nonLoopbackKeys(configuration).length > 0) refuseDemoSecrets(configuration, problems)
  // A sidecar issues no tokens and takes no passwords. Its pod decides who may reach it.
  if (!isSidecar(configuration)) refuseHttpIssuer(configuration, problems)
}

/**
 * The hashes in config/demo.yaml, whose secrets everyone knows. They are refused even in a copy of that file that is no
 * longer marked `demo` (C10). A test keeps them and the file the same.
 */
export const DEMO_HASHES: ReadonlySet<string> = new Set([
  'sha256:LrS2csIIenKerBXhR_QzSOAnV-FAjLrko9uDiwaZEYQ',
  'sha256:UP5Mc29tQTT525IYtFxnGUbtnXLvzf5PtyAhIQu3Sj0',
  'sha256:VmEtZ4CLzi3ozg72CIkoiovoOLeWCO4zQJTCD-BJk_o',
  '$argon2id$v=19$m=19456,t=2,p=1$ONkPwx0e0TE+rLENpK9ssg$OjB8Q/llxpQX5ZPdg/d3WkrQivUVr9DkS90gzdW84vs',
  '$argon2id$v=19$m=19456,t=2,p=1$pyou1U8eafKO+KRSga6twQ$cwMw3nz/iQuVMNyxuvzB8oGHjeePMB8GdVXtwTAxEuo',
  '$argon2id$v=19$m=19456,t=2,p=1$/nutTG3Ts1NkUpaElVlYgw$PsmVTU0jbqNT8Zt0syauCVLPzwPaAeAL5NOzARupsXw',
])
