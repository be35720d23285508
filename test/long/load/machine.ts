import { execFileSync } from 'node:child_process'
import { cpus, loadavg } from 'node:os'

const git = (...args: readonly string[]): string =>
  execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim()

function commit(): string {
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no') === '' ? '' : ', with changes'
    return git('rev-parse', '--short=10', 'HEAD') + changed
  } catch {
    return 'unknown'
  }
}

/** One line for the head of a report: without it nobody can compare the figures. The load is that of the last minute. */
export function machine(): string {
  const cores = cpus()
  const load = loadavg()[0]?.toFixed(1) ?? '?'
  const day = new Date().toISOString().slice(0, 10)
  return `${cores[0]?.model ?? 'unknown CPU'}, ${cores.length} cores (load ${load}), Node ${process.version}, commit ${commit()}, ${day}`
}
