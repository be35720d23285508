/** What Postern holds in memory: idle, after a load of small answers, and after one of large answers. */
import { setTimeout as pause } from 'node:timers/promises'
import { heldMegabytes } from './held-memory.ts'
import { startPosternProcess } from './postern-process.ts'
import { ACTIONS_YAML, PATH, PATH_100_KB, ROOT } from './subjects.ts'
import { wrk } from './wrk.ts'

/** Milliseconds after its start at which an idle process is weighed. */
const IDLE = 60_000
const SECONDS = 10
const CONNECTIONS = 64

/** Weighed on the way, in MB. */
async function weigh(upstream: string, yaml: string, root: string): Promise<readonly number[]> {
  const postern = await startPosternProcess(upstream, ACTIONS_YAML + yaml, { root })
  await pause(IDLE)
  const weights = [heldMegabytes(postern.pids())]
  for (const path of [PATH, PATH_100_KB]) {
    await wrk({
      url: postern.origin + path,
      headers: postern.headers,
      seconds: SECONDS,
      connections: CONNECTIONS,
    })
    weights.push(heldMegabytes(postern.pids()))
  }
  postern.stop()
  return weights
}

/** Prints the table. @param beside another checkout of Postern */
export async function compareMemory(upstream: string, beside: string | undefined): Promise<void> {
  console.log(
    `\nMemory in MB: a minute after the start (goal 150), and right after ${SECONDS} s of load (goal 200)\n`,
  )
  console.log(
    `| subject | idle | after ${CONNECTIONS} connections of 1 KB | then of 100 KB |\n|${'---|'.repeat(4)}`,
  )
  for (const [name, root] of [
    ['Postern', ROOT],
    ...(beside === undefined ? [] : [['Postern in BENCH_BESIDE', beside] as const]),
  ] as const)
    for (const workers of [1, 2]) {
      const weights = await weigh(upstream, `workers: ${workers}\n`, root)
      console.log(`| ${name}, workers: ${workers} | ${weights.map((mb) => mb.toFixed(0)).join(' | ')} |`)
    }
}
