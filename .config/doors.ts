/**
 * `npm run doors [NAME …]`: whether extensions can be deleted. In a copy of the repository it deletes the folder, the line and the
 * tests of each extension (default: of every one, then of all together); what is left must have no type error, serve (the smoke
 * tests) and say what is missing (`test/doors`).
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const LIST = 'src/serve/start/extensions.ts'

const every = readdirSync(join(ROOT, 'src/extensions'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
const asked = process.argv.slice(2)
const unknown = asked.find((name) => !every.includes(name))
if (unknown !== undefined) {
  console.error(`npm run doors [NAME …]: there is no extension ${unknown}. There are ${every.join(', ')}`)
  process.exit(2)
}
/** What is deleted at once. */
const each = (asked.length > 0 ? asked : every).map((name) => [name])
const doors = asked.length > 0 || every.length === 1 ? each : [...each, every]

function copyTo(folder: string): void {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const file of files.split('\0').filter((path) => path !== '' && existsSync(join(ROOT, path))))
    cpSync(join(ROOT, file), join(folder, file), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
}

function deleteIn(folder: string, names: readonly string[]): void {
  for (const name of names) {
    rmSync(join(folder, 'src/extensions', name), { recursive: true })
    rmSync(join(folder, 'test/extensions', name), { recursive: true })
  }
  const lines = readFileSync(join(folder, LIST), 'utf8').split('\n')
  const left = lines.filter((line) => !names.some((name) => line.includes(`/extensions/${name}/`)))
  writeFileSync(join(folder, LIST), left.join('\n'))
}

/** `node_modules` of the copy is a link to the repository's: what `tsc` knows of the copy must not be kept there. */
const TYPES = ['typescript/bin/tsc', '--project', '.', '--incremental', 'false', '--tsBuildInfoFile', 'null']
const TESTS = ['vitest/vitest.mjs', 'run', '--config', '.config/vitest.config.ts', '--project', 'doors']

function passes(
  folder: string,
  [program = '', ...args]: readonly string[],
  without: readonly string[],
): boolean {
  const { status } = spawnSync(process.execPath, [join('node_modules', program), ...args], {
    ...{ cwd: folder, stdio: 'inherit' },
    // Node keys what it has compiled by its path, and the copy's is another one each time.
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: join(folder, '.compiled'),
      POSTERN_WITHOUT: without.join(' '),
    },
  })
  return status === 0
}

const failed = doors.filter((names) => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-doors-'))
  try {
    copyTo(folder)
    deleteIn(folder, names)
    console.log(`\nwithout ${names.join(', ')}`)
    // Both, so that one run tells all that is wrong.
    const results = [TYPES, TESTS].map((command) => passes(folder, command, names))
    return results.includes(false)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
for (const names of failed) console.error(`doors: ${names.join(', ')} cannot be deleted`)
if (failed.length === 0)
  console.log(`doors: can be deleted: ${doors.map((names) => names.join(' and ')).join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
