import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Recorder } from '../../base/contracts/records/recorder.ts'
import { isShared, type Store } from '../../base/contracts/records/store.ts'
import { programBeside, threadEnvironment } from '../../base/files/beside.ts'
import { type After, after as systemAfter, type Clock, repeatedly } from '../../base/kernel/clock.ts'
import { toFault } from '../../base/kernel/faults.ts'
import { withoutDebugger } from '../../base/kernel/no-debugger.ts'
import { planSqlite, type StoreConfig } from './schema.ts'
import type { SqlitePlan } from './sqlite/sqlite-file.ts'
import { type OpenOptions, StoreError } from './link/store-error.ts'
import { markStore, recoveryAdvice, requireNotLost } from './sqlite/store-files.ts'

export interface Examined {
  readonly damage?: string | undefined
}

/** Milliseconds that the start waits for the examination. */
const PATIENCE = 10_000

/**
 * Examines an existing store file before anyone opens it. Then marks its folder, so that from now on every process
 * opens this very file. Rejects with StoreError if the file is damaged, or missing in a folder that had one (T5.12).
 */
export async function examineSqlite(
  plan: SqlitePlan,
  patience = PATIENCE,
): Promise<{ later: Promise<StoreError | undefined> }> {
  const { path } = plan
  requireNotLost(path)
  if (!existsSync(path)) return { later: Promise.resolve(undefined) }
  const examined = examine(path)
  const late = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => late.resolve(undefined), patience)
  const error = await Promise.race([examined, late.promise])
  clearTimeout(timer)
  if (error !== undefined) throw error
  markStore(path)
  return { later: examined }
}

/**
 * Examines in a process of its own. A large file takes minutes; a thread could not be stopped in between, and would
 * keep this process from ending. Never rejects: an examination that fails has found no damage.
 */
function examine(path: string): Promise<StoreError | undefined> {
  return new Promise((resolve) => {
    const program = fileURLToPath(programBeside(import.meta.url, 'examine-program'))
    const child = execFile(
      process.execPath,
      [...withoutDebugger([]), program, path],
      { env: threadEnvironment() },
      (error, stdout) => {
        process.off('exit', kill)
        const damage = error === null ? (JSON.parse(stdout) as Examined).damage : undefined
        resolve(
          damage === undefined
            ? undefined
            : new StoreError(`The store ${path} is damaged: ${damage}. ${recoveryAdvice(path)}`),
        )
      },
    )
    // It must not keep this process alive. The start has a timer of its own.
    child.unref()
    for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref()
    const kill = (): unknown => child.kill('SIGKILL')
    process.once('exit', kill)
  })
}

/** How long the store may take to answer a command, in milliseconds: long enough for another command to end meanwhile. */
export const ANSWER_COMMAND_WITHIN = 10_000

/**
 * Opens the store of a configuration. `data` is the folder for keys and state. Only the code of the kind in use is
 * loaded. Rejects with StoreError if the store cannot be used (T7): damaged, of a newer version, not writable.
 */
export async function openStore(
  config: StoreConfig,
  data: string,
  clock: Clock,
  { onTrouble, answerWithin }: OpenOptions = {},
): Promise<Store> {
  if (config.kind === 'memory') {
    const { MemoryStore } = await import('./sqlite/memory.ts')
    return new MemoryStore(clock)
  }
  // Never another store in its place: what it has would be lost.
  if (isShared(config)) throw new StoreError(`There is no kind of store ${config.kind}.`)
  const { SqliteStore } = await import('./sqlite/sqlite.ts')
  const planned = planSqlite(config, data)
  if (answerWithin === undefined) return SqliteStore.open(planned, clock, onTrouble)
  // A write waits for the disk, which may hang, or for locks only, which have an end.
  const here = planned.synchronous === 'normal'
  return SqliteStore.open({ ...planned, answerWithin, here }, clock, onTrouble)
}

/**
 * Examines a store file before anyone opens it; the service does this once, when it starts. Rejects with StoreError if the store is
 * damaged, or missing in a folder that had one.
 * After 10 seconds the examination of a large store continues in the background: `later` resolves with the damage that it
 * finds, if any.
 */
export async function examineStore(
  config: StoreConfig,
  data: string,
): Promise<{ later: Promise<StoreError | undefined> }> {
  if (config.kind !== 'sqlite') return { later: Promise.resolve(undefined) }
  return examineSqlite(planSqlite(config, data))
}

/** The time between two purges, in milliseconds. */
const INTERVAL = 60_000
/** Milliseconds for which the node that purges keeps the others from it. */
const LEASE = 150_000
/** Records at once: 10 ms of work in a large store, 30 at worst. Other requests wait no longer than that. */
const BATCH = 200
/** Milliseconds between batches, so that other requests get their turn. */
const PAUSE = 50

/**
 * Removes expired records once a minute, in small batches. Of several nodes that share a store one does it. The
 * interval varies by up to a quarter, so that processes that started together don't purge at the same moment. Returns a
 * function that stops it. Failures are logged, not thrown.
 */
export function startPurging({
  store,
  recorder,
  after = systemAfter,
  random = Math.random,
}: {
  readonly store: Store
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  readonly random?: () => number
}): () => void {
  let stopped = false
  const pauseAfter = (removed: number): number => (removed > 0 ? PAUSE : INTERVAL * (0.75 + random() / 2))
  const purge = async (): Promise<number> => {
    try {
      return (await store.hold('purge', LEASE)) ? await store.purge(BATCH) : 0
    } catch (thrown) {
      if (stopped) return 0
      recorder.note('warn', 'store.purge_failed', { reason: toFault(thrown).message })
      return 0
    }
  }
  const end = repeatedly(after, pauseAfter(0), () => purge().then(pauseAfter))
  return () => {
    stopped = true
    end()
  }
}
