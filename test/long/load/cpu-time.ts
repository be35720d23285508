import { readFileSync, readdirSync } from 'node:fs'

/** Clock ticks a second: fixed at 100 on every Linux that Node runs on. */
const TICKS = 100

const parentOf = (stat: string): number => Number(fieldsOf(stat)[1])
/** After the command's name, which may hold spaces and parentheses. */
const fieldsOf = (stat: string): string[] => stat.slice(stat.lastIndexOf(')') + 2).split(' ')

function readStat(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined
  }
}

/** A process and everything below it. */
export function processTree(root: number): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Number.isInteger)
  const parents = new Map(pids.map((pid) => [pid, parentOf(readStat(pid) ?? ') X 0')]))
  const tree = new Set([root])
  for (const pid of tree) for (const [child, parent] of parents) if (parent === pid) tree.add(child)
  return [...tree]
}

/** CPU seconds that these processes have used, all threads, user and system. */
export const cpuSeconds = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => {
    const fields = fieldsOf(readStat(pid) ?? ') X' + ' 0'.repeat(20))
    return sum + (Number(fields[11]) + Number(fields[12])) / TICKS
  }, 0)
