/**
 * Explains calls by a configuration file, without a service: for your own tests of who may call what. Published as
 * `postern/explain`, and described in config/explain.md.
 */
import { Buffer } from 'node:buffer'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../../base/config/validate.ts'
import { ConfigurationError, problemLines } from '../../base/config/problems.ts'
import { NO_TRAIL } from '../../base/contracts/records/audit.ts'
import type { DescribedCall, Explanation } from '../../base/contracts/calls/explanation.ts'
import { NO_RECORDER } from '../../base/contracts/records/recorder.ts'
import type { Store } from '../../base/contracts/records/store.ts'
import { MARK_KINDS } from '../../identity/directory/records/marks.ts'
import { SUBJECT } from '../../identity/directory/records/stored-directory.ts'
import { explainCall } from '../../gateway/explain/explain.ts'
import { LocalLockouts } from '../../identity/guessing/lockouts.ts'
import { type Clock, systemClock } from '../../base/kernel/clock.ts'
import { splitListenAddress } from '../../base/kernel/listen-address.ts'
import { serviceUrls } from '../../gateway/server/schema.ts'
import { loadConfiguration } from '../../operate/settings/check-configuration.ts'
import { type Configuration, configuredSwitches } from '../../operate/settings/configuration.ts'
import { STORED_KINDS } from '../../operate/settings/parties.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { inspectStore } from '../../state/stores/read-store.ts'
import { openDependencies, type WorkerDependencies } from './dependencies.ts'
import { explainPartsOf } from './explain.ts'
import { STATE_PARTS, SETTINGS } from './settings.ts'
import { openMeasures } from '../parts/measures.ts'
import { openState } from '../parts/state.ts'
import { closablesOf, closeAll, openParts } from '../parts/parts.ts'
import { compileService } from './compile-service.ts'

export type {
  ExplainedAction,
  ExplainedCaller,
  ExplainedCheck,
  Explanation,
  Refusal,
  Verdict,
} from '../../base/contracts/calls/explanation.ts'

/** A call that is not made. Either `token`, or `client` and, unless it is a machine, `user`; or nobody calls. */
export interface CallToExplain {
  /** Default: GET. */
  readonly method?: string
  /** Path and query, as in the request line. */
  readonly path: string
  /** By name. A list is several lines. Host and Content-Length are added where they are missing. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** Its Content-Type belongs into `headers`. */
  readonly body?: string | Uint8Array
  /** The address that it comes from. Default: loopback. */
  readonly from?: string
  readonly client?: string
  /** Name or subject. */
  readonly user?: string
  /** `b/ACME` or `f/ACME/SUPER1`. */
  readonly target?: string
  /** Default: the default scope of the client, or all that the client may have if it has none. */
  readonly scope?: string
  /** An access token of an issuer that a sidecar trusts. Nobody has signed a token for a service that does not run. */
  readonly token?: string
}

export interface ExplainerOptions {
  /** The environment that the configuration reads. Default: that of the process. */
  readonly environment?: Environment
  /** The time at which calls are decided, in milliseconds since the epoch. Default: now. */
  readonly now?: () => number
  /** False leaves out the clients and users of the store. Default: true. The store is only read. */
  readonly store?: boolean
}

export interface Explainer {
  /** Resolves with what would be decided, and why. Rejects with TypeError if the call is not described as it must be. */
  explain(call: CallToExplain): Promise<Explanation>
  /** Closes what the configuration has opened. */
  close(): Promise<void>
}

/** A configuration that could not be served. Each problem says where it is, and what is wrong. */
export class ExplainerError extends Error {
  override readonly name = 'ExplainerError'
  readonly problems: readonly string[]

  constructor(file: string, problems: readonly string[]) {
    super(`${file} cannot be served:\n${problems.join('\n')}`)
    this.problems = problems
  }
}

/**
 * Opens a configuration file as the service would, without serving it: no port is bound, no connection is made and
 * nothing is written to its data folder. Rejects with ExplainerError if it could not be served.
 */
export async function openExplainer(file: string, options: ExplainerOptions = {}): Promise<Explainer> {
  const environment = options.environment ?? process.env
  const { configuration, problems } = loadConfiguration(SETTINGS, file, environment)
  if (configuration === undefined) throw new ExplainerError(file, problemLines(problems))
  await using opened = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'postern-explain-'))
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const clock = clockOf(options)
  try {
    const apart = {
      ...configuration,
      data: folder,
      store: { ...configuration.store, kind: 'memory' as const },
    }
    const beneath = { clock, recorder: NO_RECORDER, audit: NO_TRAIL, measures: openMeasures(apart, false) }
    const state = opened.use(await openState(apart, { ...beneath, ...STATE_PARTS }))
    if (options.store !== false) await copyDirectory(configuration, state.store)
    const attempts = new LocalLockouts(apart.identity.guessing, clock)
    const reports = { attempts, rateUsage: () => undefined }
    const dependencies = await openDependencies(apart, { ...beneath, environment, state, opened }, reports)
    const explain = await openExplain(apart, dependencies, opened)
    const inUse = opened.move()
    return { explain, close: () => inUse.disposeAsync() }
  } catch (error) {
    throw error instanceof ConfigurationError ? new ExplainerError(file, problemLines(error.problems)) : error
  }
}

async function openExplain(
  configuration: Configuration,
  dependencies: WorkerDependencies,
  opened: AsyncDisposableStack,
): Promise<Explainer['explain']> {
  const { admission, maintenance } = dependencies
  const parts = await openParts(configuration, dependencies)
  opened.defer(() => closeAll(closablesOf(parts)))
  dependencies.openedFunds.attach(parts.directory.places)
  maintenance.configure(configuredSwitches(configuration))
  const { port } = splitListenAddress(configuration.server.listen)
  const service = compileService(parts, dependencies, serviceUrls(configuration.server, port), NO_RECORDER)
  const explainParts = explainPartsOf(service, admission)
  return async (call) => explainCall(explainParts, describe(call))
}

const clockOf = ({ now }: ExplainerOptions): Clock =>
  now === undefined ? systemClock : { now, monotonic: () => systemClock.monotonic() }

/** The directory of the store, which is only read. */
async function copyDirectory(configuration: Configuration, into: Pick<Store, 'create'>): Promise<void> {
  if (isSidecar(configuration)) return
  const { store: config, data } = configuration
  await inspectStore({ config, data, kinds: SETTINGS.added.stores }, async (store) => {
    for (const kind of [SUBJECT, ...STORED_KINDS, ...MARK_KINDS])
      for (const { key, value } of await store.list(kind)) await into.create(kind, key, { value })
  })
}

/** @throws TypeError */
function describe(call: CallToExplain): DescribedCall {
  const { method = 'GET', path, headers = {}, body = '', from, client, user, target, scope, token } = call
  if (client === undefined && (user ?? target ?? scope) !== undefined)
    throw new TypeError('expected a client beside a user, a target and a scope')
  if (client !== undefined && token !== undefined)
    throw new TypeError('expected a token, or a client: not both')
  return {
    method,
    path,
    from,
    token,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      [value].flat().map((each) => [name, each] as const),
    ),
    body: Buffer.from(body),
    caller: client === undefined ? undefined : { client, user, target, scope },
  }
}
