import { type ChildProcessWithoutNullStreams, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { appendFile, unlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DEMO, ROOT } from '../support/spawn-postern.ts'

const run = promisify(execFile)

/** A clone with its packages, in which nothing was made yet. */
function clone(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-clone-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const part of ['src', 'config', '.config', 'package.json', 'package-lock.json', 'tsconfig.json'])
    cpSync(join(ROOT, part), join(folder, part), {
      recursive: true,
      filter: (path) => !path.endsWith('node_modules'),
    })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** What `npm start` would run, after it has made it. */
const program = async (folder: string): Promise<{ program: string; told: string }> => {
  const { stdout, stderr } = await run(process.execPath, ['.config/program.ts'], { cwd: folder })
  return { program: stdout.trim(), told: stderr }
}
const madeAt = (folder: string): number => statSync(join(folder, 'dist/main.js')).mtimeMs
const parts = (folder: string): string[] => globSync('dist/parts/*', { cwd: folder })

/** `npm start` in a clone, until it has said where it serves; what it had said by then. */
async function serve(folder: string): Promise<string> {
  const data = mkdtempSync(join(tmpdir(), 'postern-clone-data-'))
  const env = { ...process.env, POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0', POSTERN_DATA: data }
  const child: ChildProcessWithoutNullStreams = spawn('npm', ['start', '--', DEMO], {
    ...{ cwd: folder, env, detached: true },
  })
  const ended = once(child, 'close')
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
  onTestFinished(async () => {
    process.kill(-(child.pid ?? Number.NaN), 'SIGTERM')
    await ended
    rmSync(data, { recursive: true, force: true })
  })
  const found = () => /serving \S+ at (http:\S+)/.exec(output)?.[1]
  await expect.poll(found, { timeout: 100_000 }).toBeDefined()
  const answer = await fetch(`${found() ?? ''}/connect/authorize`)
  expect(await answer.text()).toContain('/connect/assets/postern.css')
  return output
}

describe('npm start', () => {
  it('makes the bundle, and makes it again when a source is newer or gone, and no other time', async () => {
    const folder = clone()
    expect(await program(folder)).toEqual({ program: 'dist/main.js', told: '' })
    const first = madeAt(folder)
    expect(await program(folder)).toEqual({ program: 'dist/main.js', told: '' })
    expect(madeAt(folder)).toBe(first)
    await appendFile(join(folder, 'src/base/kernel/clock.ts'), '\nexport const NEWER = 1\n')
    await program(folder)
    const second = madeAt(folder)
    expect(second).toBeGreaterThan(first)
    await writeFile(join(folder, 'src/base/kernel/unused.ts'), '')
    await program(folder)
    const third = madeAt(folder)
    expect(third).toBeGreaterThan(second)
    await unlink(join(folder, 'src/base/kernel/unused.ts'))
    await program(folder)
    expect(madeAt(folder)).toBeGreaterThan(third)
  })

  it('leaves a service that runs the parts that it has not read yet, for a day', async () => {
    const folder = clone()
    await program(folder)
    const first = parts(folder)
    await appendFile(join(folder, 'src/base/kernel/clock.ts'), "\nprocess.stderr.write('')\n")
    await program(folder)
    const both = parts(folder)
    expect(both).toEqual(expect.arrayContaining(first))
    expect(both.length).toBeGreaterThan(first.length)
    const long = new Date(Date.now() - 25 * 3_600_000)
    for (const file of first) await utimes(join(folder, file), long, long)
    await appendFile(join(folder, 'src/main.ts'), '\n')
    await program(folder)
    // Some parts are the same in both, and were written anew.
    const gone = first.filter((file) => !parts(folder).includes(file))
    expect(gone.length).toBe(both.length - first.length)
  })

  it('serves twice at once, in a clone where nothing was made yet', async () => {
    const folder = clone()
    await Promise.all([serve(folder), serve(folder)])
    expect(globSync('dist/.new-*', { cwd: folder })).toEqual([])
    expect(readFileSync(join(folder, 'dist/main.js'), 'utf8')).not.toBe('')
  })

  it('serves the sources, and says so in one line, where the bundle cannot be written', async () => {
    const folder = clone()
    await writeFile(join(folder, 'dist'), 'not a folder')
    expect(await serve(folder)).toMatch(
      /^postern: the bundle cannot be made \(.*\): running the sources, which take more memory$/m,
    )
  })
})
