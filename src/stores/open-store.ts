import { existsSync } from 'node:fs'
import { execFile } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { programBeside } from '../kernel/beside.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import { StoreError } from './store-error.ts'
import { markStore, requireNotLost, recoveryAdvice } from './store-files.ts'
import type { Store } from '../contracts/store.ts'
import type { Clock } from '../kernel/clock.ts'
import { planSqlite, type StoreConfig } from './config.ts'
import type { TroubleListener } from './sqlite-link.ts'
import type { Recorder } from '../contracts/recorder.ts'
import { toFault } from '../kernel/faults.ts'
import { after as systemAfter, type After } from '../kernel/after.ts'

/** What was found in a file: nothing if `damage` is absent. */
export interface Examined {
  readonly damage?: string | undefined
}

/** Milliseconds that a start waits for the examination. */
const PATIENCE = 10_000

/**
 * Examines the file of a store that is there already, before it is opened, and marks its folder: whoever opens it from
 * now on opens this very file. Rejects with StoreError if it is damaged, or gone though the folder had one (T5.12).
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
 * In a process of its own: of a large file it takes minutes, which a thread cannot be taken out of, and no process ends
 * before its threads have. Never rejects: who cannot examine has found nothing.
 */
function examine(path: string): Promise<StoreError | undefined> {
  return new Promise((resolve) => {
    const program = fileURLToPath(programBeside(import.meta.url, 'examine-program'))
    const child = execFile(process.execPath, [program, path], { env: {} }, (error, stdout) => {
      process.off('exit', kill)
      const damage = error === null ? (JSON.parse(stdout) as Examined).damage : undefined
      resolve(
        damage === undefined
          ? undefined
          : new StoreError(`The store ${path} is damaged: ${damage}. ${recoveryAdvice(path)}`),
      )
    })
    // Whoever waits for it has a timer; nobody else is kept.
    child.unref()
    for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref()
    const kill = (): unknown => child.kill('SIGKILL')
    process.once('exit', kill)
  })
}

/**
 * Opens the store of a configuration; `data` is the folder for keys and state. Only the kind in use is loaded.
 * Rejects with StoreError if it is not fit to be used (T7): damaged, of a newer version, not writable.
 */
export async function openStore(
  config: StoreConfig,
  data: string,
  clock: Clock,
  onTrouble?: TroubleListener,
): Promise<Store> {
  if (config.kind === 'memory') {
    const { MemoryStore } = await import('./memory.ts')
    return new MemoryStore(clock)
  }
  const { SqliteStore } = await import('./sqlite.ts')
  return SqliteStore.open(planSqlite(config, data), clock, onTrouble)
}

/**
 * Examines the store before anything opens it; the service does this once, when it starts. Rejects with StoreError if
 * it is damaged, or gone though the folder had one. A large one is examined further while it serves: `later` resolves
 * with the damage that was found then, if any.
 */
export async function examineStore(
  config: StoreConfig,
  data: string,
): Promise<{ later: Promise<StoreError | undefined> }> {
  if (config.kind === 'memory') return { later: Promise.resolve(undefined) }
  return examineSqlite(planSqlite(config, data))
}

export interface PurgeParts {
  readonly store: Store
  readonly recorder: Pick<Recorder, 'note'>
  readonly after?: After
  /** 0 to 1. */
  readonly random?: () => number
}

const INTERVAL = 60_000
/** Some 10 ms of work in a large store, 30 at worst: what others ask meanwhile waits no longer than that. */
const BATCH = 200
/** Milliseconds between batches, in which others have their turn. */
const PAUSE = 50

/**
 * Removes what has expired, once a minute, in small batches. The intervals differ by up to a quarter, so that
 * processes which started together don't all do it in the same moment. Answers what stops it.
 */
export function startPurging({
  store,
  recorder,
  after = systemAfter,
  random = Math.random,
}: PurgeParts): () => void {
  let cancel: () => void
  let stopped = false
  const next = (removed: number): void => {
    if (stopped) return
    const pause = removed > 0 ? PAUSE : INTERVAL * (0.75 + random() / 2)
    cancel = after(pause, () => void purge().then(next))
  }
  const purge = async (): Promise<number> => {
    try {
      return await store.purge(BATCH)
    } catch (thrown) {
      if (stopped) return 0
      recorder.note('warn', 'store.purge_failed', { reason: toFault(thrown).message })
      return 0
    }
  }
  next(0)
  return () => {
    stopped = true
    cancel()
  }
}
