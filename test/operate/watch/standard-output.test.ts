import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'

const MODULE = new URL('../../../src/operate/watch/log/log.ts', import.meta.url).href
/** More than a pipe holds. */
const COUNT = 10_000

const program = (ending: string): string[] => {
  const source = `
    import { standardOutput } from ${JSON.stringify(MODULE)}
    const output = standardOutput((lines) => \`\${lines} lines are missing\\n\`)
    for (let line = 0; line < ${COUNT}; line += 1) output.write(\`line \${line} \${'x'.repeat(50)}\\n\`)
    ${ending}`
  return ['--input-type=module', '--eval', source]
}

const LINES = Array.from({ length: COUNT }, (_, line) => `line ${line} ${'x'.repeat(50)}\n`).join('')

const ENDINGS = [
  ['it is flushed and the process lives on', 'output.flush()'],
  ['the process ends at once', 'process.exit(0)'],
  ['the process ends at once after a flush', 'output.flush(); process.exit(0)'],
] as const

describe('T5.11 standard output has every line, in order, where', () => {
  it.each(ENDINGS)('it is a pipe and %s', async (_name, ending) => {
    const { stdout } = await promisify(execFile)(process.execPath, program(ending), { maxBuffer: 1 << 20 })
    expect(stdout).toBe(LINES)
  })

  it.each(ENDINGS)('it is a file and %s', async (_name, ending) => {
    const path = join(await dataFolder(), 'log')
    const child = spawn(process.execPath, program(ending), {
      stdio: ['ignore', openSync(path, 'a'), 'inherit'],
    })
    await once(child, 'exit')
    expect(readFileSync(path, 'utf8')).toBe(LINES)
  })
})

it('T5.11 a named pipe has every line, in order, though its reader leaves in the middle of one and another comes', async () => {
  const path = join(await dataFolder(), 'pipe')
  execFileSync('mkfifo', [path])
  const open = (flags: number): number => openSync(path, flags | constants.O_NONBLOCK)
  const [first, end] = [open(constants.O_RDONLY), open(constants.O_WRONLY)]
  const child = spawn(process.execPath, program('output.flush(); setInterval(() => undefined, 1000)'), {
    stdio: ['ignore', end, 'inherit'],
  })
  closeSync(end)
  const bytes = Buffer.alloc(1 << 20)
  let text = ''
  const read = (reader: number, most = bytes.length): void => {
    text += bytes.toString('utf8', 0, readSync(reader, bytes, 0, most, null))
  }
  await eventually(() => read(first, 5000))
  // The pipe is filled again, up to the middle of a line.
  await delay(1200)
  closeSync(first)
  await delay(1200)
  const second = open(constants.O_RDONLY)
  await eventually(() => {
    read(second)
    expect(text).toMatch(/\nline 9999 x+\n$/)
  }).finally(() => child.kill())
  closeSync(second)
  expect(text).toBe(LINES)
})

describe('T5.11 a process ends when it is told to, though', () => {
  const ENDING = 'process.exit(0)'

  it.each(ENDINGS.slice(1))('nobody reads its standard output, where %s', async (_name, ending) => {
    const child = spawn(process.execPath, program(ending), { stdio: ['ignore', 'pipe', 'inherit'] })
    child.stdout.pause()
    expect(await once(child, 'exit')).toEqual([0, null])
    child.stdout.destroy()
  })

  it('its disk is full', async () => {
    const child = spawn(process.execPath, program(ENDING), {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'inherit'],
    })
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it('another process has made the pipe wait again', async () => {
    const ending = `
      const { execFileSync } = await import('node:child_process')
      execFileSync(process.execPath, ['--eval', 'process.stdout'], { stdio: 'inherit' })
      output.flush(); ${ENDING}`
    const child = spawn(process.execPath, program(ending), { stdio: ['ignore', 'pipe', 'inherit'] })
    child.stdout.pause()
    expect(await once(child, 'exit')).toEqual([0, null])
    child.stdout.destroy()
  })
})
