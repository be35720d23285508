/**
 * `npm run doors [NAME …]`: whether extensions can be deleted (default: each of them, then all together). In a copy of the repository
 * it deletes the folder, the line and the tests, those of other folders that use the feature too, and the extension's keys of the top
 * level in `config/` and `test/`. What is left must have no type error, serve (the smoke tests) and say what is missing (`test/doors`).
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
import { dirname, join } from 'node:path'
import ts from 'typescript'
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
  const folders = names.flatMap((name) => [`src/extensions/${name}`, `test/extensions/${name}`])
  const gone = new Set(
    folders.flatMap((each) => globSync(`${each}/**/*.ts`, { cwd: folder })).map((file) => join(folder, file)),
  )
  for (const each of folders) rmSync(join(folder, each), { recursive: true })
  const lines = readFileSync(join(folder, LIST), 'utf8').split('\n')
  const left = lines.filter((line) => !names.some((name) => line.includes(`/extensions/${name}/`)))
  writeFileSync(join(folder, LIST), left.join('\n'))
  deleteTestsOf(gone, folder)
}

/** Relative imports of a source, as paths. */
const importsOf = (path: string, text: string): readonly string[] =>
  ts
    .preProcessFile(text)
    .importedFiles.filter(({ fileName }) => fileName.startsWith('.'))
    .map(({ fileName }) => join(dirname(path), fileName))

/**
 * Tests of other folders that use the feature are deleted too: they lead by their imports to a file that is gone, so they would be
 * type errors. Those of `test/doors` must not, and stay.
 */
function deleteTestsOf(gone: Set<string>, folder: string): void {
  const tests = globSync('test/**/*.ts', { cwd: folder, exclude: ['test/doors/**'] })
    .map((file) => join(folder, file))
    .map((file) => ({ file, imports: importsOf(file, readFileSync(file, 'utf8')) }))
  const before = gone.size
  for (let size = 0; size !== gone.size;) {
    size = gone.size
    for (const { file, imports } of tests) if (imports.some((each) => gone.has(each))) gone.add(file)
  }
  for (const { file } of tests) if (gone.has(file)) rmSync(file)
  console.log(`tests of other folders: ${gone.size - before} files use it, and are deleted too`)
}

/** A file of configuration without a section of the top level. */
const withoutSection = (text: string, key: string): string =>
  text.replace(new RegExp(`^${key}:.*\\n(?:[ #].*\\n|\\n(?= ))*`, 'm'), '')

/** The configurations that are shipped may use what is deleted. */
async function deleteKeysIn(folder: string, names: readonly string[]): Promise<void> {
  const keys: string[] = []
  for (const name of names) {
    const { extension } = (await import(join(ROOT, 'src/extensions', name, 'extension.ts'))) as {
      extension: Extension
    }
    keys.push(...Object.keys(extension.settings?.keys?.[''] ?? {}))
  }
  for (const file of globSync('{config,test}/**/*.yaml', { cwd: folder })) {
    const text = readFileSync(join(folder, file), 'utf8')
    writeFileSync(join(folder, file), keys.reduce(withoutSection, text))
  }
}

const TESTS = ['vitest/vitest.mjs', 'run', '--config', '.config/vitest.config.ts', '--project', 'doors']
/** `node_modules` of the copy is a link to the repository's: what `tsc` knows of the copy must not be kept there. */
const TYPES = ['typescript/bin/tsc', '--incremental', 'false', '--tsBuildInfoFile', 'null', '--project', '.']

const parsed = new Map<string, { readonly text: string; readonly file: ts.SourceFile }>()

/** Reads as TypeScript's own does, and parses what has not changed once for all extensions. */
function openHost(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options)
  const parse = host.getSourceFile.bind(host)
  host.getSourceFile = (name, ...how) => {
    const text = host.readFile(name)
    const known = parsed.get(name)
    if (text !== undefined && known?.text === text) return known.file
    const file = parse(name, ...how)
    if (file !== undefined && text !== undefined) parsed.set(name, { text, file })
    return file
  }
  return host
}

/** The sources that may have an error now: they lead to the list by their imports, or import a file that is gone. */
function affected(program: ts.Program, folder: string): readonly ts.SourceFile[] {
  const files = program.getSourceFiles().filter(({ fileName }) => fileName.startsWith(join(folder, 'src')))
  const imports = new Map(files.map((file) => [file, importsOf(file.fileName, file.text)]))
  const found = new Set([join(folder, LIST)])
  const isAffected = (file: ts.SourceFile): boolean =>
    (imports.get(file) ?? []).some((target) => found.has(target) || isLost(target))
  const isLost = (target: string): boolean => !existsSync(target)
  for (let size = 0; size !== found.size;) {
    size = found.size
    for (const file of files) if (isAffected(file)) found.add(file.fileName)
  }
  return files.filter(({ fileName }) => found.has(fileName))
}

/** Whether the sources have no type error; prints those that they have. */
function sourcesFit(folder: string): boolean {
  const read = (file: string): string => readFileSync(file, 'utf8')
  const { config } = ts.readConfigFile(join(folder, 'tsconfig.json'), read) as { config: object }
  const sources = { ...config, include: ['src'] }
  const { options, fileNames } = ts.parseJsonConfigFileContent(sources, ts.sys, folder)
  const program = ts.createProgram(fileNames, options, openHost(options))
  const files = affected(program, folder)
  const errors = files.flatMap((file) => [
    ...program.getSyntacticDiagnostics(file),
    ...program.getSemanticDiagnostics(file),
  ])
  const host = { ...ts.sys, getCanonicalFileName: (name: string) => name, getNewLine: () => '\n' }
  process.stdout.write(ts.formatDiagnostics(errors, { ...host, getCurrentDirectory: () => folder }))
  console.log(`types: ${files.length} files, ${errors.length} errors`)
  return errors.length === 0
}

async function passes(
  folder: string,
  [program = '', ...args]: readonly string[],
  without: readonly string[],
): Promise<boolean> {
  const running = spawn(process.execPath, [join('node_modules', program), ...args], {
    cwd: folder,
    stdio: 'inherit',
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
  for (const names of doors) {
    console.log(`\nwithout ${names.join(', ')}`)
    copyTo(folder)
    deleteIn(folder, names)
    await deleteKeysIn(folder, names)
    // Both, so that one run tells all that is wrong.
    const tests = passes(folder, TESTS, names)
    // Where all are missing the tests are looked at too.
    const types = names === every ? passes(folder, TYPES, names) : sourcesFit(folder)
    const results = await Promise.all([types, tests])
    if (results.includes(false)) failed.push(names)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
for (const names of failed) console.error(`doors: ${names.join(', ')} cannot be deleted`)
if (failed.length === 0)
  console.log(`doors: can be deleted: ${doors.map((names) => names.join(' and ')).join(', ')}`)
process.exitCode = failed.length === 0 ? 0 : 1
