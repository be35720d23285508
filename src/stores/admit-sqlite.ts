import { existsSync } from 'node:fs'
import { execFile } from 'node:child_process'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import { programBeside } from '../kernel/beside.ts'
import type { SqlitePlan } from './sqlite-file.ts'
import { StoreError } from './store-error.ts'
import { markStore, requireNotLost, wayOut } from './store-marker.ts'

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
          : new StoreError(`The store ${path} is damaged: ${damage}. ${wayOut(path)}`),
      )
    })
    // Whoever waits for it has a timer; nobody else is kept.
    child.unref()
    for (const stream of [child.stdout, child.stderr]) (stream as Socket | null)?.unref()
    const kill = (): unknown => child.kill('SIGKILL')
    process.once('exit', kill)
  })
}
