/** Finds the service of a configuration or of a data folder; where none runs, this process does its work (C12.1.7). */
import { setTimeout as wait } from 'node:timers/promises'
import { type Announced, tryLock } from '../../operate/trail/lock.ts'
import { Problems } from '../../base/config/problems.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import { localUrl } from '../../base/kernel/listen-address.ts'
import { hasCode, messageOf } from '../../base/kernel/thrown.ts'
import {
  adminTokenFile,
  findService,
  isOnThisHost,
  isReachable,
  readAdminToken,
  trailOf,
} from '../../operate/trail/announcement.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { OperationError } from '../../operate/operation/errors.ts'
import type { SharedOperation } from '../../operate/operation/operation.ts'
import type { Terminal, WaitClock } from '../../operate/operation/terminal.ts'
import { type Configuration, readDataFolder } from '../../operate/settings/configuration.ts'
import { type CallOptions, ownToken } from '../line/call-options.ts'
import { configurationFile, writeReport } from '../line/command.ts'
import { type Engine, type LockHere, NothingDone, type CommandPurpose, remoteEngine } from './engine.ts'
import { refuseOtherUser, refuseUnkeptTrail } from './operator-here.ts'
import { SETTINGS, trailFolderOf } from '../../serve/start/settings.ts'

/** Milliseconds to wait for another command, or for a service that starts or ends. */
const PATIENCE = 10_000
const PAUSE = 100

/** Its timer keeps the process alive, unlike that of `after`. */
const SYSTEM_WAITING: WaitClock = { monotonic: () => systemClock.monotonic(), pause: wait }

/** Values that were given in addition to the configuration, and take precedence over it. */
interface Given {
  /** The operator's own token. */
  readonly own: string | undefined
  /** The address of the admin listener. */
  readonly given: string | undefined
}

/** The facts that a command knows of the service that it is for. */
interface Ground {
  /** Absent with `--data`. */
  readonly file: string | undefined
  /** As far as it could be read. */
  readonly configuration: Configuration | undefined
  readonly problems: Problems | undefined
  /** Undefined if the file does not say. */
  readonly data: string | undefined
  /** The folder of the trail, if it is known that one is kept. */
  readonly trail: string | undefined
}

/** @throws UsageError if no configuration was named, and there is no default */
function readGround({ config, data }: CallOptions, terminal: Terminal): Ground {
  if (data !== undefined)
    return { file: undefined, configuration: undefined, problems: undefined, data, trail: undefined }
  const file = configurationFile(config, terminal)
  const { configuration, problems } = SETTINGS.read(file, terminal.env)
  const isKnown = (section: string): boolean =>
    !problems.list.some(({ path, severity }) => severity === 'error' && path[0] === section)
  const folder = configuration && isKnown('data') ? configuration.data : readDataFolder(file, terminal.env)
  const trail =
    configuration && folder !== undefined && isKnown('audit') && isKnown('issuers')
      ? trailFolderOf({ ...configuration, data: folder })
      : undefined
  return { file, configuration, problems, data: folder, trail }
}

/** Only what says where the service is must be free of problems: maintenance must work while the file is being edited. */
const SECTIONS = ['admin', 'audit', 'data', 'issuers']

const usable = ({ configuration, problems }: Ground): Configuration | undefined =>
  problems?.list.some(({ path, severity }) => severity === 'error' && SECTIONS.includes(String(path[0]))) ===
  true
    ? undefined
    : configuration

async function tokenOf(data: string): Promise<string> {
  try {
    return await readAdminToken(data)
  } catch (error) {
    throw new OperationError(
      hasCode(error, 'ENOENT')
        ? `no service of this configuration has started yet: there is no ${adminTokenFile(data)}. Start it (postern serve), or name the configuration of one that runs: --config`
        : `the admin token cannot be read: ${messageOf(error)}`,
    )
  }
}

const NO_TOKEN =
  'the service has a token of its own, which its configuration does not tell: give yours (--admin-token)'

/** The token for a service: the operator's own, that of the data folder which the service names, or the configured one. */
async function tokenFor({ own }: Given, ground: Ground, service?: Announced): Promise<string> {
  if (own !== undefined) return own
  if (service?.data !== undefined) return tokenOf(service.data)
  const configured = usable(ground)?.admin.token
  if (configured !== undefined) return configured
  if (service !== undefined || ground.data === undefined) throw new OperationError(NO_TOKEN)
  return tokenOf(ground.data)
}

const serviceOf = ({ data, trail }: Ground): Announced | undefined =>
  data === undefined ? undefined : findService({ data, trail })

/** Writes what is wrong with the configuration. */
function refuseConfiguration({ file, problems }: Ground, terminal: Terminal, more = ''): NothingDone {
  if (file !== undefined && problems !== undefined) writeReport(file, problems, terminal)
  if (more !== '') terminal.stderr.write(`postern: ${more}\n`)
  return new NothingDone()
}

/** As `openEngine` (cli/operations.ts). */
export async function findEngine(purpose: CommandPurpose, given: Given): Promise<Engine> {
  const { operation, options, terminal } = purpose
  const ground = readGround(options, terminal)
  const { file } = ground
  const isShared = operation.runs === 'service or here'
  const configuration = usable(ground)
  const unfit = isShared && configuration && operation.unfit?.(configuration, false)
  if (unfit)
    throw refuseConfiguration({ ...ground, problems: undefined }, terminal, `${file ?? ''}: ${unfit}`)
  if (given.given !== undefined)
    return remoteEngine({ address: given.given, token: await tokenFor(given, ground, serviceOf(ground)) })
  const engine = isShared
    ? await findShared({ ...purpose, operation }, ground, given)
    : await findRemote(purpose, ground, given)
  const { data, trail = data === undefined ? undefined : trailOf(data) } = ground
  return { ...engine, trailFolder: trail }
}

/** As `findEngine`, of an operation that is carried out here where no service runs, for a configuration that was read already. */
export function findEngineOf(
  configuration: Configuration,
  purpose: CommandPurpose & { readonly operation: SharedOperation },
): Promise<Engine> {
  const { options, terminal } = purpose
  const { data } = configuration
  const ground: Ground = {
    file: configurationFile(options.config, terminal),
    configuration,
    problems: new Problems(),
    data,
    trail: trailFolderOf(configuration),
  }
  return findShared(purpose, ground, { own: ownToken(options, terminal), given: undefined })
}

/**
 * Looks where a running service says that it is, because it may have been started with another port; otherwise where
 * its configuration says.
 */
async function findRemote({ terminal }: CommandPurpose, ground: Ground, given: Given): Promise<Engine> {
  const service = serviceOf(ground)
  if (service !== undefined) {
    // The same address is another program's here, which would get the token.
    if (!isOnThisHost(service)) throw new OperationError(noAnswerFrom(service))
    return remoteEngine({ address: service.adminUrl, token: await tokenFor(given, ground, service) })
  }
  if (ground.file === undefined) throw new OperationError(noServiceOn(ground))
  const configuration = usable(ground)
  if (configuration !== undefined)
    return remoteEngine({
      address: localUrl(configuration.admin.listen),
      token: await tokenFor(given, ground),
    })
  throw refuseConfiguration(
    ground,
    terminal,
    'it does not say where the service is: give --admin-url and your own token',
  )
}

const noAnswerFrom = ({ adminUrl }: Announced): string =>
  `the service does not answer at ${adminUrl}: give --admin-url`

const noServiceOn = ({ data = '' }: Ground): string => `no service runs on ${data}, or it does not say so`

type Shared = CommandPurpose & { readonly operation: SharedOperation }

/** Whether anything is written, so that only one process may do it. */
const writes = ({ method, leavesRecord }: SharedOperation): boolean =>
  method !== 'GET' || leavesRecord === true

async function findShared(purpose: Shared, ground: Ground, given: Given): Promise<Engine> {
  const { operation, terminal } = purpose
  const { monotonic, pause } = terminal.waiting ?? SYSTEM_WAITING
  const deadline = monotonic() + PATIENCE
  for (;;) {
    const service = serviceOf(ground)
    if (service !== undefined && (await isReachable(service)))
      return remoteEngine({ address: service.adminUrl, token: await tokenFor(given, ground, service) })
    // Only the service can do it then: it may be busy, or in another container.
    if (service !== undefined && !isServable(ground)) {
      if (monotonic() > deadline) throw new OperationError(noAnswerFrom(service))
      await pause(PAUSE)
      continue
    }
    const read = servable(ground, terminal)
    const { configuration } = read
    const unfit = operation.unfit?.(configuration, true)
    if (unfit !== undefined)
      throw refuseConfiguration(
        { ...ground, problems: undefined },
        terminal,
        `${ground.file ?? ''}: ${unfit}`,
      )
    refuseOtherUser(configuration.data)
    if (!isSidecar(configuration)) refuseUnkeptTrail(configuration.data)
    if (!writes(operation)) return openHere(purpose, read, given, undefined)
    const lock = lockOf(ground, configuration)
    if (lock !== undefined) return openHere(purpose, read, given, lock === 'none' ? undefined : lock)
    if (monotonic() > deadline) {
      const folder = ground.trail ?? configuration.data
      const unrecorded =
        service === undefined
          ? `${folder} is in use by another process that does not end`
          : `${folder} is in use by a service that does not answer at ${service.adminUrl}: give --admin-url`
      // A question would be answered without its record, though somebody could leave one.
      if (operation.method === 'GET') throw new OperationError(unrecorded)
      return openHere(purpose, read, given, { unrecorded })
    }
    await pause(PAUSE)
  }
}

/** A configuration that could be served, and its file. */
interface Servable {
  readonly configuration: Configuration
  readonly file: string
}

const isServable = ({ file, configuration, problems }: Ground): boolean =>
  file !== undefined && configuration !== undefined && problems?.failed === false

/** Throws NothingDone, after its problems were written, if the configuration could not be served. */
function servable(ground: Ground, terminal: Terminal): Servable {
  const { configuration, problems, file } = ground
  if (file === undefined) throw new OperationError(noServiceOn(ground))
  if (configuration === undefined || problems?.failed !== false) throw refuseConfiguration(ground, terminal)
  return { configuration, file }
}

/** Undefined while another process has the lock. `none`: no trail is kept, and a folder that cannot be written has no lock. */
function lockOf({ trail }: Ground, { data }: Configuration): LockHere | 'none' | undefined {
  try {
    const lock = tryLock(trail ?? data)
    return lock && { lock }
  } catch (thrown) {
    return trail === undefined ? 'none' : { unrecorded: messageOf(thrown) }
  }
}

async function openHere(
  { operation, terminal }: Shared,
  { configuration, file }: Servable,
  { own }: Given,
  lock: LockHere | undefined,
): Promise<Engine> {
  const { engineHere } = await import('./engine-here.ts')
  return engineHere({ operation, configuration, file, terminal, own, lock })
}
