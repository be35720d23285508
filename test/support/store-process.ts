import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { atEnd } from './shared.ts'

const PROGRAM = fileURLToPath(new URL('store-program.ts', import.meta.url))

export interface StoreProcess {
  readonly process: ChildProcess
  /** Lines it has written so far. */
  readonly lines: string[]
  /** Resolves at the first line that starts so; rejects if it ends without. */
  line(start: string): Promise<string>
  /** Resolves with its exit code when it has ended; all its lines are there then. */
  ended(): Promise<number | null>
}

/** A process of its own that works on a store (store-program.ts). Killed when the test is over. */
export function startStoreProcess(...args: readonly string[]): StoreProcess {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines: string[] = []
  const reader = createInterface({ input: child.stdout })
  reader.on('line', (line) => lines.push(line))
  const closed = Promise.all([once(child, 'exit'), once(reader, 'close')])
  atEnd(async () => {
    child.kill('SIGKILL')
    await closed
  })
  return {
    process: child,
    lines,
    async line(start) {
      for (;;) {
        const found = lines.find((line) => line.startsWith(start))
        if (found !== undefined) return found
        const more = await Promise.race([once(reader, 'line'), closed.then(() => undefined)])
        if (more === undefined) throw new Error(`the process ended without a line "${start}"`)
      }
    },
    async ended() {
      await closed
      return child.exitCode
    },
  }
}
