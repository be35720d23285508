/**
 * `npm run prove [NAME … | all] [-- OPTION …]`: runs what takes long and reports figures, one script after another; without
 * a name, tells the names. What follows the names from the first option, number or path (`/…`, `./…`) on is handed to the script.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { machine } from '../load/machine.ts'
import { isMissing, PARTS, type PartName } from '../../support/machine.ts'

const FOLDER = import.meta.dirname
/** Parts of other scripts, and this one. */
const NO_SCRIPTS = new Set(['run', 'proven-pool', 'mutants', 'mutation-setup', 'mutation-worker'])

const scripts = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length))
  .filter((name) => !NO_SCRIPTS.has(name))

/** What the head comment of a script says it reports. */
const summaryOf = (name: string): string =>
  (/^\/\*\*([^]*?)\*\//.exec(readFileSync(join(FOLDER, `${name}.ts`), 'utf8'))?.[1] ?? '')
    .replace(/\n \*/g, '')
    .replace(/`node [^`]*`:? ?/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 110)

const args = process.argv.slice(2)
const firstOption = args.findIndex((arg) => /^[-0-9./]/.test(arg))
const [named, options] =
  firstOption === -1 ? [args, []] : [args.slice(0, firstOption), args.slice(firstOption)]
const unknown = named.filter((name) => name !== 'all' && !scripts.includes(name))

if (named.length === 0 || unknown.length > 0) {
  if (unknown.length > 0) console.log(`There is no script ${unknown.join(', ')}.`)
  console.log('npm run prove NAME …, or all:')
  for (const name of scripts) console.log(`  ${name.padEnd(20)} ${summaryOf(name)}`)
  process.exit(unknown.length > 0 ? 2 : 0)
}

console.log(machine())
const missing = (Object.keys(PARTS) as PartName[]).filter(isMissing)
if (missing.length > 0) console.log(`Missing on this machine: ${missing.join(', ')}`)
const failed: string[] = []
for (const name of named.includes('all') ? scripts : named) {
  console.log(`\n== ${name}, ${new Date().toISOString()}`)
  const start = performance.now()
  const { status } = spawnSync(process.execPath, [join(FOLDER, `${name}.ts`), ...options], {
    stdio: 'inherit',
  })
  console.log(
    `== ${name}: ${Math.round((performance.now() - start) / 1000)} s, exit code ${status ?? 'none'}`,
  )
  if (status !== 0) failed.push(name)
}
console.log(failed.length === 0 ? '\nall ended well' : `\nfailed: ${failed.join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
