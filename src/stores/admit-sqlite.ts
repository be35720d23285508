import { existsSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { programBeside } from '../kernel/beside.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import { StoreError } from './store-error.ts'
import { markStore, requireNotLost, wayOut } from './store-marker.ts'

/** What the thread that examines a file has found: undefined if nothing is wrong. */
export interface Examined {
  readonly damage: string | undefined
}

/** Milliseconds that a start waits for the examination. */
const PATIENCE = 10_000

/**
 * Examines the file of a store that is there already, before it is opened, and marks its folder: whoever opens it from
 * now on opens this very file. Rejects with StoreError if it is damaged, or gone though the folder had one (T5.12).
 */
export async function admitSqlite(
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

/** On a thread of its own: of a large file it takes seconds. Never rejects: who cannot examine has found nothing. */
function examine(path: string): Promise<StoreError | undefined> {
  return new Promise((resolve) => {
    const worker = new Worker(programBeside(import.meta.url, 'examine-thread'), {
      name: 'store-check',
      workerData: path,
      env: {},
    })
    worker.unref()
    worker.on('message', ({ damage }: Examined) => {
      resolve(
        damage === undefined
          ? undefined
          : new StoreError(`The store ${path} is damaged: ${damage}. ${wayOut(path)}`),
      )
    })
    worker.on('error', () => resolve(undefined))
    worker.on('exit', () => resolve(undefined))
  })
}
