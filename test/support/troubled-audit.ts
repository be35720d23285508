/**
 * Loaded before the program (`node --require`): gives the thread of the audit trail a disk that fails as the file
 * `audit.trouble` says, beside the folder of the trail. Without that file, nothing fails.
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { threadName, workerData } from 'node:worker_threads'
import type { ThreadPlan } from '../../src/audit/audit-thread.ts'

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

const file = (): string => `${(workerData as ThreadPlan).folder}.trouble`
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

if (threadName === 'audit') giveTrouble()
