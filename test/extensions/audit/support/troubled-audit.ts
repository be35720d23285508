/**
 * Loaded before the program (`node --require`): gives the thread of the audit trail a disk that fails as the file
 * `audit.trouble` says, beside the folder of the trail. Without that file, nothing fails. A command writes in its own thread:
 * there it is syncs that stand or are slow.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { isMainThread, threadName, workerData } from 'node:worker_threads'
import type { ThreadPlan } from '../../../../src/extensions/audit/write/audit-thread.ts'

export type DiskTrouble =
  /** A sync does not return. */
  | 'frozen'
  /** Each sync takes three seconds. */
  | 'slow'
  /** Nothing can be written, made, cut or removed. */
  | 'read-only'
  /** The next sync fails; what was written is in doubt. */
  | 'failing sync'
  /** The next write writes a part and then fails. */
  | 'short write'

const { existsSync, readFileSync, rmSync } = fs

const folder = isMainThread
  ? join(process.env['POSTERN_DATA'] ?? '', 'audit')
  : (workerData as Partial<ThreadPlan>).folder
const file = (): string => `${folder ?? ''}.trouble`
const trouble = (): string | undefined => (existsSync(file()) ? readFileSync(file(), 'utf8') : undefined)
const systemError = (code: string): Error =>
  Object.assign(new Error(`${code}: as the test wants it`), { code })
const cell = new Int32Array(new SharedArrayBuffer(4))
/** Milliseconds of a slow sync. */
const SLOW = 3000

/** Runs before the real function. */
const TROUBLES: Readonly<Record<string, (name: string) => void>> = {
  frozen: (name) => {
    while (name === 'fdatasyncSync' && trouble() === 'frozen') Atomics.wait(cell, 0, 0, 5)
  },
  slow: (name) => {
    if (SYNCS.includes(name)) Atomics.wait(cell, 0, 0, SLOW)
  },
  'read-only': () => {
    throw systemError('EROFS')
  },
  'failing sync': (name) => {
    if (name !== 'fdatasyncSync') return
    rmSync(file())
    throw systemError('EIO')
  },
}

const SYNCS = ['fdatasyncSync', 'fsyncSync']
const TROUBLED = ['openSync', 'mkdirSync', 'writeSync', ...SYNCS, 'ftruncateSync', 'unlinkSync']

type Call = (...args: unknown[]) => unknown

function giveTrouble(): void {
  const functions = fs as unknown as Record<string, Call>
  const { writeSync } = functions
  for (const name of TROUBLED) {
    const real = functions[name] as Call
    functions[name] = (...args) => {
      const now = trouble()
      if (now === 'short write' && name === 'writeSync') {
        rmSync(file())
        writeSync?.(args[0], (args[1] as Uint8Array).subarray(0, 100))
        throw systemError('ENOSPC')
      }
      TROUBLES[now ?? '']?.(name)
      return real(...args)
    }
  }
  syncBuiltinESMExports()
}

async function standAside(): Promise<void> {
  while (trouble() === 'frozen') await wait(5)
  if (trouble() === 'slow') await wait(SLOW)
}

function giveTroubleAside(): void {
  const { fdatasync } = fs
  const { open } = fs.promises
  Object.assign(fs, {
    fdatasync: (...args: Parameters<typeof fdatasync>) => void standAside().then(() => fdatasync(...args)),
  })
  fs.promises.open = async (...args) => {
    const handle = await open(...args)
    for (const name of ['sync', 'datasync'] as const) {
      const real = handle[name].bind(handle)
      handle[name] = () => standAside().then(real)
    }
    return handle
  }
  syncBuiltinESMExports()
}

const [, program = '', verb] = process.argv
if (threadName === 'audit') giveTrouble()
else if (isMainThread && /[/\\]main\.[jt]s$/.test(program) && verb !== 'serve') giveTroubleAside()
