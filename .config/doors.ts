/**
 * `npm run doors [NAME …]`: whether extensions can be deleted. In a copy of the repository it deletes the folder, the line and the
 * tests of each extension, and its keys in what is shipped (default: of every one, then of all together); what is left must have no type error, serve (the smoke
 * tests) and say what is missing (`test/doors`).
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Extension } from '../src/operate/hooks/extension.ts'

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
const doors = asked.length > 0 ? asked.map((name) => [name]) : [...every.map((name) => [name]), every]

function copyTo(folder: string): void {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  for (const file of files.split('\0').filter((path) => path !== '' && existsSync(join(ROOT, path))))
    cpSync(join(ROOT, file), join(folder, file), { recursive: true, preserveTimestamps: true })
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

/** A file of configuration without a section of the top level. */
const withoutSection = (text: string, key: string): string =>
  text.replace(new RegExp(`^${key}:.*\\n(?:[ #].*\\n|\\n(?= ))*`, 'm'), '')

/** What is shipped uses what is there. */
async function deleteKeysIn(folder: string, names: readonly string[]): Promise<void> {
  const keys: string[] = []
  for (const name of names) {
    const { extension } = (await import(join(ROOT, 'src/extensions', name, 'extension.ts'))) as {
      extension: Extension
    }
    keys.push(...Object.keys(extension.settings?.keys[''] ?? {}))
  }
  for (const file of globSync('config/**/*.yaml', { cwd: folder })) {
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), keys.reduce(withoutSection, text))
  }
}

/**
 * `node_modules` of the copy is a link to the repository's: what `tsc` knows of the copy must not be kept there. Without one extension
 * only the sources can have an error that they have not without all of them: that one extension needs another.
 */
const TYPES = ['typescript/bin/tsc', '--incremental', 'false', '--tsBuildInfoFile', 'null', '--project']
const SOURCES = 'src.tsconfig.json'
const TESTS = ['vitest/vitest.mjs', 'run', '--config', '.config/vitest.config.ts', '--project', 'doors']

async function passes(
  folder: string,
  [program = '', ...args]: readonly string[],
  without: readonly string[],
): Promise<boolean> {
  const running = spawn(process.execPath, [join('node_modules', program), ...args], {
    ...{ cwd: folder, stdio: 'inherit' },
    // Node keys what it has compiled by its path, and the copy's is another one each time.
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: join(folder, '.compiled'),
      POSTERN_WITHOUT: without.join(' '),
    },
  })
  const [code] = (await once(running, 'close')) as [number | null]
  return code === 0
}

const failed: (readonly string[])[] = []
const folder = mkdtempSync(join(tmpdir(), 'postern-doors-'))
try {
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, SOURCES), JSON.stringify({ extends: './tsconfig.json', include: ['src'] }))
  for (const names of doors) {
    copyTo(folder)
    deleteIn(folder, names)
    await deleteKeysIn(folder, names)
    console.log(`\nwithout ${names.join(', ')}`)
    // Both, so that one run tells all that is wrong.
    const types = [...TYPES, names === every ? '.' : SOURCES]
    const results = await Promise.all([types, TESTS].map((command) => passes(folder, command, names)))
    if (results.includes(false)) failed.push(names)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const names of failed) console.error(`doors: ${names.join(', ')} cannot be deleted`)
if (failed.length === 0)
  console.log(`doors: can be deleted: ${doors.map((names) => names.join(' and ')).join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
