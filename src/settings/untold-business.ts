/** Warns of services that cannot know which business a call is about: they would answer with anybody's data (C11.6.1). */
import { parseTemplate, placeholdersOf } from '../backends/template.ts'
import type { KeyPath, Problems } from '../config/problems.ts'
import { foldName } from '../http/end-to-end-headers.ts'
import type { Configuration } from './configuration.ts'

type BackendConfig = Configuration['backends'][string]
type Forwarding = Extract<BackendConfig, { kind: 'http' | 'stream' }>
type OperationUpstream = NonNullable<
  NonNullable<Configuration['actions'][number]['methods']['GET']>['upstream']
>
type Texts = Readonly<Record<string, string>>

/**
 * One warning for each operation that says itself how its calls are sent, and one for each backend whose own section
 * decides. Memory and modules are given the business by name, and code around a forwarder may send it: of these nothing is
 * told.
 */
export function warnOfUntoldBusiness({ backends, areas, actions }: Configuration, problems: Problems): void {
  const places = new Map<string, KeyPath>()
  for (const [at, { area, methods }] of actions.entries())
    for (const [method, { upstream = {} }] of Object.entries(methods)) {
      const name = upstream.backend ?? areas[area]?.backend ?? ''
      const backend = backends[name]
      if (!isForwarding(backend) || tellsBusiness(backend, upstream)) continue
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
const decidesItself = ({ path, query, headers, auth, forwardAuthorization }: OperationUpstream): boolean =>
  [path, query, headers, auth, forwardAuthorization].some((each) => each !== undefined)

/** The headers that are sent by default tell nothing to a service that was never told to read them. */
function tellsBusiness(backend: Forwarding, upstream: OperationUpstream): boolean {
  const { identity } = backend
  if (identity === 'headers' || identity === 'token') return true
  if (upstream.forwardAuthorization ?? (upstream.auth === undefined && backend.forwardAuthorization))
    return true
  const path = upstream.path ?? backend.path
  // Without a template the client's path is sent, which has the business.
  if (path === undefined) return true
  const query = { ...backend.query, ...upstream.query }
  const headers = { ...folded(backend.headers), ...folded(upstream.headers) }
  return [path, ...Object.values(query), ...Object.values(headers)].some(namesBusiness)
}

const folded = (headers: Texts = {}): Texts =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [foldName(name), value]))

/** A text that is no template is told by the check of templates. */
function namesBusiness(source: string): boolean {
  const template = parseTemplate(source)
  return typeof template === 'string' || placeholdersOf(template).includes('business')
}
