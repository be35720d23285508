import { startPostern, type Running } from '../start/app.ts'
import { checkConfiguration, loadConfiguration } from '../settings/check-configuration.ts'
import { isSidecar, type Configuration } from '../settings/configuration.ts'
import { takeBackFromGroup } from '../start/data-group.ts'
import { systemClock } from '../kernel/clock.ts'
import { onSignals } from '../server/drain.ts'
import { ConfigurationError } from '../start/service.ts'
import { configurationFile, EXIT, writeReport, type Terminal, type Command } from './command.ts'

/** What an operator can mend (a port that is taken, a folder that may not be written) needs no stack. */
const isPlain = (error: unknown): error is Error =>
  error instanceof Error && ('code' in error || PLAIN.has(error.name))

const PLAIN = new Set([
  'KeyFolderError',
  'StoreError',
  'AdminTokenError',
  'CertificateError',
  'ContentsChanged',
])

/** What an operator can do about errors of the system that say nothing of it. */
const ADVICE: Readonly<Record<string, string>> = {
  EADDRINUSE:
    'another process has that port; end it, or set another one: `server.listen` or POSTERN_PORT, `admin.listen` or POSTERN_ADMIN_PORT',
  EADDRNOTAVAIL: 'this machine has no such address; change `server.listen` or `admin.listen`',
}

function told(error: Error): string {
  const advice = 'code' in error ? ADVICE[String(error.code)] : undefined
  return advice === undefined ? error.message : `${error.message}: ${advice}`
}

/** A worker process tells it by name. */
const isRefusal = (error: unknown): boolean =>
  error instanceof ConfigurationError || (error instanceof Error && error.name === 'ConfigurationError')

/** The same report as `check`, whichever step found the first problem. */
async function refuse(file: string, terminal: Terminal): Promise<number> {
  writeReport(file, await checkConfiguration(file, terminal.env), terminal)
  return EXIT.refused
}

/** Resolves once a signal has made it stop and everything in flight is finished. */
function untilStopped(running: Running): Promise<number> {
  return new Promise((resolve, reject) => {
    const drain = (): void => void running.close().then(() => resolve(EXIT.done), reject)
    // A second signal means now; what is cut then is not finished.
    onSignals(process, systemClock, { drain, force: () => process.exit(EXIT.failed) })
  })
}

/** For what is under way when the service has stopped: the last lines of the log, above all. */
const LEFTOVERS_MS = 2000

/** SIGHUP: read the configuration anew. SIGUSR2: replace the workers, one after the other. */
function obeySignals({ control }: Running): () => void {
  const orders = {
    SIGHUP: () => void control.reload({ via: 'SIGHUP' }),
    SIGUSR2: () => void control.restart({ via: 'SIGUSR2' }),
  }
  for (const [signal, order] of Object.entries(orders)) process.on(signal, order)
  return () => {
    for (const [signal, order] of Object.entries(orders)) process.off(signal, order)
  }
}

/** See data-group.ts. */
async function takeBack(configuration: Configuration, { stderr }: Terminal): Promise<void> {
  const { data, dataGroup } = configuration
  if (dataGroup !== 'own' || isSidecar(configuration)) return
  const taken = await takeBackFromGroup(data)
  if (taken.length > 0)
    stderr.write(`postern: took from the group what it could do with ${taken.join(', ')} (dataGroup: own)\n`)
}

interface Loaded {
  readonly configuration: Configuration
  readonly file: string
  readonly files: ReadonlySet<string>
}

/** Nothing if the file is refused. The report, which knows the line of every value, is let go of before it is served. */
function load(file: string, terminal: Terminal): Loaded | undefined {
  const { configuration, report } = loadConfiguration(file, terminal.env)
  if (configuration === undefined) return undefined
  writeReport(file, report, terminal)
  return { configuration, file, files: report.files }
}

async function start({ configuration, file, files }: Loaded, terminal: Terminal): Promise<number> {
  const { env: environment, stderr } = terminal
  // Whoever read these lines may have left (a log shipper that restarts): no reason to end a service.
  stderr.on('error', () => undefined)
  await takeBack(configuration, terminal)
  const source = { file, files }
  const running = await startPostern(configuration, { clock: systemClock, environment, source })
  const { baseUrl, adminPort, adminTokenFile } = running
  // Before it says that it serves: whoever reads that may send a signal at once, and an unheard one kills the process.
  const stopped = untilStopped(running)
  const disobey = obeySignals(running)
  stderr.write(`postern: serving ${file} at ${baseUrl} (admin listener: port ${adminPort})\n`)
  if (adminTokenFile !== undefined) stderr.write(`postern: the admin API’s token is in ${adminTokenFile}\n`)
  try {
    return await stopped
  } finally {
    // What a module has left running (a timer, a connection) must not keep the process.
    setTimeout(() => process.exit(), LEFTOVERS_MS).unref()
    disobey()
  }
}

/** `postern serve [FILE]`: serves until SIGTERM or SIGINT; exit code 2 if the file is refused. */
export const serveCommand: Command = {
  async run(args, terminal) {
    const file = configurationFile(args, terminal)
    const loaded = load(file, terminal)
    if (loaded === undefined) return refuse(file, terminal)
    try {
      return await start(loaded, terminal)
    } catch (error) {
      if (isRefusal(error)) return refuse(file, terminal)
      if (!isPlain(error)) throw error
      terminal.stderr.write(`postern: ${told(error)}\n`)
      return EXIT.failed
    }
  },
}
