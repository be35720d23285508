import { readFileSync, readlinkSync } from 'node:fs'

/** Bytes of a process by the kernel's names, all its threads; none if it has ended. */
function rollup(pid: number): (name: string) => number {
  let text = ''
  try {
    text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  } catch {
    // It has ended.
  }
  return (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) * 1024
}

/** What these processes hold of their own, in MB: their anonymous pages. */
export const ownMegabytes = (pids: readonly number[]): number =>
  pids.reduce((sum, pid) => sum + rollup(pid)('Anonymous'), 0) / 1e6

/**
 * What these processes take, in MB: their anonymous pages, and the pages of each program once, however many processes run
 * it. The sum of their resident memory counts a program once for each.
 */
export function heldMegabytes(pids: readonly number[]): number {
  const programs = new Map<string, number>()
  for (const pid of pids) {
    const bytes = rollup(pid)
    const program = programOf(pid)
    const fromFiles = bytes('Rss') - bytes('Anonymous')
    programs.set(program, Math.max(programs.get(program) ?? 0, fromFiles))
  }
  return ownMegabytes(pids) + [...programs.values()].reduce((sum, bytes) => sum + bytes, 0) / 1e6
}

function programOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`)
  } catch {
    return ''
  }
}
