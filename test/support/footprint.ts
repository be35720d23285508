import { readdirSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { SpawnedPostern } from './spawn-postern.ts'

const PROGRAM = fileURLToPath(new URL('weigh-heap.ts', import.meta.url))

/** The environment of a Postern whose `heap` can be asked for. */
export const weighed = { NODE_OPTIONS: `--import ${PROGRAM}` }

/** Descriptors that a process has open. */
export const descriptorsOf = ({ pid }: SpawnedPostern): number => readdirSync(`/proc/${pid}/fd`).length

/** Bytes that a process spawned as `weighed` can't do without. */
export async function heapOf(postern: SpawnedPostern): Promise<number> {
  const told = (): string[] => [...postern.output().matchAll(/^heap (\d+)$/gm)].map(([, bytes = '']) => bytes)
  const before = told().length
  process.kill(postern.pid, 'SIGIO')
  while (told().length === before) await wait(10)
  return Number(told().at(-1))
}
