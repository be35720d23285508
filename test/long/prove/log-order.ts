/**
 * Whether lines keep their order where a process ends while some are on their way: `node test/long/prove/log-order.ts [RUNS]`,
 * each run once into a pipe and once into a file.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const RUNS = Number(process.argv[2] ?? 60)
const LINES = 3000
const MODULE = new URL('../../../src/operate/watch/log/log.ts', import.meta.url).href
const SOURCE = `
  import { standardOutput } from ${JSON.stringify(MODULE)}
  const output = standardOutput(() => 'gap\\n')
  for (let line = 0; line < ${LINES}; line += 1) output.write('line ' + line + ' ' + 'x'.repeat(50) + '\\n')
  process.exit(0)`
const ARGS = ['--input-type=module', '--eval', SOURCE]
const EXPECTED = Array.from({ length: LINES }, (_, line) => `line ${line} ${'x'.repeat(50)}\n`).join('')

const folder = mkdtempSync(join(tmpdir(), 'postern-order-'))

async function intoPipe(): Promise<string> {
  const child = spawn(process.execPath, ARGS, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(child, 'close')
  return text
}

async function intoFile(run: number): Promise<string> {
  const path = join(folder, String(run))
  const child = spawn(process.execPath, ARGS, { stdio: ['ignore', openSync(path, 'w'), 'inherit'] })
  await once(child, 'close')
  return readFileSync(path, 'utf8')
}

const wrong = { pipe: 0, file: 0 }
let next = 0
// Side by side, so that threads of the pool come late.
const lane = async (): Promise<void> => {
  for (let run = next++; run < RUNS; run = next++) {
    if ((await intoPipe()) !== EXPECTED) wrong.pipe += 1
    if ((await intoFile(run)) !== EXPECTED) wrong.file += 1
  }
}
await Promise.all(Array.from({ length: 8 }, lane))
rmSync(folder, { recursive: true })
console.log(`${RUNS} runs each: out of order or cut in a pipe ${wrong.pipe}, in a file ${wrong.file}`)
