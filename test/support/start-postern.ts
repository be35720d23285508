import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isShared } from '../../src/base/contracts/records/store.ts'
import { startPostern as start, type Running } from '../../src/serve/start/service.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { isSidecar } from '../../src/identity/keys/issuers/issuers-schema.ts'
import type { MaintenanceSwitches } from '../../src/gateway/maintenance/maintenance.ts'
import { systemClock, type Clock } from '../../src/base/kernel/clock.ts'
import type { WorkerDependencies } from '../../src/serve/start/dependencies.ts'
import { forgetRecords } from './audit-files.ts'
import { watchAnswers } from './documented.ts'
import { withQuickPasswords } from './quick-passwords.ts'
import { readOnce } from './read-once.ts'
import { giveKey } from './ready-key.ts'
import { anewForEachTest, atEnd } from './shared.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'
import { withAudit } from './with-audit.ts'

export interface StartOptions {
  /** File name in config/. */
  readonly config?: string
  /** Path of another file, served as it stands: it is watched, and a reload reads it again. */
  readonly file?: string
  readonly clock?: Clock
  /** Changes the loaded configuration before it is served. */
  readonly change?: (configuration: Configuration) => Configuration
  /** UPSTREAM_URL and the like. */
  readonly environment?: Readonly<Record<string, string>>
  /** Keep the data folder of an earlier start. */
  readonly data?: string
  /**
   * For what looks at no file of the store or of the trail, whose threads are most of the cost of a start: which of both is
   * kept. The store is in memory otherwise. Default: both. What `change` is given is so already.
   */
  readonly keeps?: 'nothing' | 'store' | 'trail'
}

export interface StartedPostern extends Running {
  /** Port of the public listener. */
  readonly port: number
  readonly adminUrl: string
  readonly data: string
  readonly configuration: Configuration
  /** Of the one worker, which serves in this process. */
  readonly switches: MaintenanceSwitches
  /** What the one worker's decisions read: for tests that let a part of it fail. */
  readonly world: WorkerDependencies
  /** Log lines so far, parsed. */
  log(): Record<string, unknown>[]
  /** The same lines as they were written. */
  logLines(): readonly string[]
}

/** The configuration that options ask for, before it is served with a data folder. Throws what is wrong with it. */
export function configurationOf(
  options: Pick<StartOptions, 'config' | 'file' | 'environment' | 'change' | 'keeps'>,
  data: string,
) {
  const environment = {
    POSTERN_PORT: '0',
    POSTERN_ADMIN_PORT: '0',
    POSTERN_DATA: data,
    ...options.environment,
  }
  const own = fileURLToPath(new URL(`../../config/${options.config ?? 'demo.yaml'}`, import.meta.url))
  const read = options.file === undefined ? readOnce : SETTINGS.read
  const { configuration: loaded, problems } = read(options.file ?? own, environment)
  if (loaded === undefined || problems.failed) throw new Error(JSON.stringify(problems.list, null, 2))
  const hasty = options.file === undefined ? withQuickPasswords(withoutWaits(loaded)) : loaded
  const given = keeping(hasty, options.keeps)
  return { configuration: options.change?.(given) ?? given, environment, files: problems.files }
}

/**
 * A Postern of its own on free ports, in this process but over real sockets, in a folder of its own. Stopped and
 * removed by whoever started it (`close`), or by `postern(…)` when the test ends.
 */
export async function startPostern(options: StartOptions = {}): Promise<StartedPostern> {
  const data = options.data ?? (await mkdtemp(join(tmpdir(), 'postern-test-')))
  const { configuration, environment, files } = configurationOf(options, data)
  const { clock = systemClock } = options
  if (options.data === undefined && !isSidecar(configuration)) await giveKey(data, clock)
  const lines: string[] = []
  anewForEachTest(() => void lines.splice(0))
  const running = await start(configuration, {
    clock,
    environment,
    ...(options.file !== undefined && { source: { file: options.file, files } }),
    // All that reads its store is in this process, and follows at once; a database may have other nodes.
    ...(!isShared(configuration.store) && { pause: () => Promise.resolve() }),
    logDestination: { write: (line: string) => void lines.push(line) },
  })
  anewForEachTest(() => forgetRecords({ data, world: running.worker!.dependencies }))
  const judge = watchAnswers(running.pool.port, running)
  return {
    ...running,
    switches: running.worker!.dependencies.switches,
    world: running.worker!.dependencies,
    port: running.pool.port,
    adminUrl: `http://127.0.0.1:${running.adminPort}`,
    data,
    configuration,
    logLines: () => lines,
    log: () => lines.flatMap((text) => text.trim().split('\n')).map((line) => JSON.parse(line)),
    close: async () => {
      const cut = await running.close()
      if (options.data === undefined) await rm(data, { recursive: true, force: true })
      judge()
      return cut
    },
  }
}

/**
 * Nobody balances load over it, and its clients have had their answers when it is closed. It sheds no load and gives its
 * store and its trail time: a machine that is busy with other tests holds both up, and a clock that a test moves by days looks like that.
 */
function withoutWaits({ server, load, store, ...rest }: Configuration): Configuration {
  const timeouts = { ...server.timeouts, lameDuck: 0, silence: 0 }
  const shedding = { ...load.shedding, delay: 0 }
  const patient = store.kind === 'sqlite' ? { ...store, deadline: 10_000 } : store
  const changed = { ...rest, server: { ...server, timeouts }, load: { ...load, shedding }, store: patient }
  return withAudit(changed, { timeout: 20_000 })
}

function keeping(configuration: Configuration, keeps: StartOptions['keeps']): Configuration {
  const isForgetful = keeps === 'nothing' || keeps === 'trail'
  const changed: Configuration = isForgetful ? { ...configuration, store: { kind: 'memory' } } : configuration
  return keeps === 'nothing' || keeps === 'store' ? withAudit(changed, { enabled: false }) : changed
}

/** For `change`: a store that is given up as soon as by default. */
export const hurried = (configuration: Configuration): Configuration => ({
  ...configuration,
  store: { kind: 'sqlite', synchronous: 'normal', deadline: 400 },
})

/** The same for one test: closed when it ends. */
export async function postern(options: StartOptions = {}): Promise<StartedPostern> {
  const started = await startPostern(options)
  atEnd(async () => {
    await started.close()
  })
  return started
}
