import { ConfigurationError } from '../../base/config/problems.ts'
import { systemClock } from '../../base/kernel/clock.ts'
import type { Terminal } from '../../operate/operation/terminal.ts'
import { EXIT } from '../../operate/operation/verb.ts'
import { onSignals } from '../../serve/processes/signals.ts'
import type { Configuration } from '../../operate/settings/configuration.ts'
import { isSidecar } from '../../identity/keys/issuers/issuers-schema.ts'
import { takeBackFromGroup } from '../../serve/parts/data-folder.ts'
import { type Running, startPostern } from '../../serve/start/service.ts'
import { commandOf, configurationFile, writeReport } from '../line/command.ts'
import { SERVE } from '../line/tables.ts'
import { SETTINGS, trailFolderOf } from '../../serve/start/settings.ts'
import { usualTrail } from '../../operate/settings/trail-settings.ts'
import { checkConfiguration, loadConfiguration } from '../../operate/settings/check-configuration.ts'

/** Whether an operator can correct it (a port in use, a folder without permission). Then no stack is shown. */
const isPlain = (error: unknown): error is Error =>
  error instanceof Error && ('code' in error || PLAIN.has(error.name))

const PLAIN = new Set([
  'KeyError',
  'StoreError',
  'AdminTokenError',
  'DataFolderError',
  'AuditFolderError',
  'ManifestError',
  'CertificateError',
  'ContentsChanged',
])

/** Advice for errors of the system that do not say it. */
const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another process uses this port; end it, or set another port: `server.listen` or POSTERN_PORT, `admin.listen` or POSTERN_ADMIN_PORT',
  EADDRNOTAVAIL: 'this machine does not have this address; change `server.listen` or `admin.listen`',
}

function messageOf(error: Error): string {
  const advice = 'code' in error ? ADVICE[String(error.code)] : undefined
  return advice === undefined ? error.message : `${error.message}: ${advice}`
}

/** Whether the configuration was refused. An error from a worker process has only the name of the class. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ConfigurationError || (error instanceof Error && error.name === 'ConfigurationError')

/** Writes the same report as `check`, whichever step found the first problem. */
async function refuse(file: string, terminal: Terminal): Promise<number> {
  writeReport(file, await checkConfiguration(SETTINGS, file, terminal.env), terminal)
  return EXIT.refused
}

/** Resolves when a signal has stopped the service and all calls in flight are finished. */
function untilStopped(running: Running): Promise<number> {
  return new Promise((resolve, reject) => {
    const drain = (): void => void running.close().then(() => resolve(EXIT.done), reject)
    // A second signal ends the process at once and cuts calls in flight.
    onSignals(process, systemClock, { drain, force: () => process.exit(EXIT.failed) })
  })
}

/** SIGHUP reads the configuration again. SIGUSR2 replaces the workers one by one. The function that is returned ends it. */
function handleSignals({ context }: Running): () => void {
  const handlers = {
    SIGHUP: () => void context.reload({ via: 'SIGHUP', channel: 'signal' }),
    SIGUSR2: () => void context.restart({ via: 'SIGUSR2', channel: 'signal' }),
  }
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler)
  return () => {
    for (const [signal, handler] of Object.entries(handlers)) process.off(signal, handler)
  }
}

/** Withdraws the rights of the group of the data folder, and of a trail that lies elsewhere, if `dataGroup` says so. */
async function takeBack(configuration: Configuration, { stderr }: Terminal): Promise<void> {
  if (configuration.dataGroup !== 'own') return
  const ofData = isSidecar(configuration) ? [] : await takeBackFromGroup(configuration.data)
  const folder = trailFolderOf(configuration)
  // One in the data folder was looked at with that.
  const isElsewhere = isSidecar(configuration) || folder !== usualTrail(configuration.data)
  const ofTrail = folder !== undefined && isElsewhere ? await takeBackFromGroup(folder) : []
  const taken = [...ofData, ...ofTrail]
  if (taken.length > 0)
    stderr.write(`postern: withdrew the rights of the group to ${taken.join(', ')} (dataGroup: own)\n`)
}

interface Loaded {
  readonly configuration: Configuration
  readonly file: string
  readonly files: ReadonlySet<string>
}

/** Undefined if the file is refused. The report is not kept: it holds the line of every value. */
function load(file: string, terminal: Terminal): Loaded | undefined {
  const { configuration, problems } = loadConfiguration(SETTINGS, file, terminal.env)
  if (configuration === undefined) return undefined
  writeReport(file, problems, terminal)
  return { configuration, file, files: problems.files }
}

/** The store and the keys may be shared. Counts that a process keeps for itself are not. */
const sharedText = (data: string): string =>
  `another service uses the data folder ${data}. Each of the two counts failed logins and rates for itself, so their ` +
  'limits are doubled. If this is no replacement, end one of them'

async function start({ configuration, file, files }: Loaded, terminal: Terminal): Promise<number> {
  const { env: environment, stderr } = terminal
  // The reader of stderr may have gone (a log shipper that restarts): that must not end the service.
  stderr.on('error', () => undefined)
  await takeBack(configuration, terminal)
  const source = { file, files }
  const running = await startPostern(configuration, { clock: systemClock, environment, source })
  const { baseUrl, adminPort, adminTokenFile } = running
  // Before it says that it serves: a signal may follow at once, and without a handler it kills the process.
  const stopped = untilStopped(running)
  const ignoreSignals = handleSignals(running)
  stderr.write(`postern: serving ${file} at ${baseUrl} (admin listener: port ${adminPort})\n`)
  if (running.sharesData) stderr.write(`postern: warning: ${sharedText(configuration.data)}\n`)
  if (adminTokenFile !== undefined)
    stderr.write(`postern: the token of the admin API is in ${adminTokenFile}\n`)
  try {
    return await stopped
  } finally {
    ignoreSignals()
  }
}

/** `postern serve [FILE]`: serves until SIGTERM, SIGINT or SIGQUIT. The exit code is 2 if the file is refused. */
export const serveCommand = commandOf(SERVE, {
  '': async ({ positionals: [named] }, terminal) => {
    const file = configurationFile(named, terminal)
    const loaded = load(file, terminal)
    if (loaded === undefined) return refuse(file, terminal)
    try {
      return await start(loaded, terminal)
    } catch (error) {
      if (isRefusal(error)) return refuse(file, terminal)
      if (!isPlain(error)) throw error
      terminal.stderr.write(`postern: ${messageOf(error)}\n`)
      return EXIT.failed
    }
  },
})
