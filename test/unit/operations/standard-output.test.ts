import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const MODULE = new URL('../../../src/operations/standard-output.ts', import.meta.url).href
const COUNT = 3000

/** What a process of its own writes, which ends in the given way after many lines. */
async function written(ending: string): Promise<string> {
  const source = `
    import { standardOutput } from ${JSON.stringify(MODULE)}
    const output = standardOutput()
    for (let line = 0; line < ${COUNT}; line += 1) output.write(\`line \${line} \${'x'.repeat(50)}\\n\`)
    ${ending}`
  const args = ['--input-type=module', '--eval', source]
  return (await promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 20 })).stdout
}

const LINES = Array.from({ length: COUNT }, (_, line) => `line ${line} ${'x'.repeat(50)}\n`).join('')

describe('standard output', () => {
  it.each([
    ['it is flushed and the process lives on', 'output.flush()'],
    ['it is flushed and the process ends at once', 'output.flushSync(); process.exit(0)'],
    ['the process ends at once', 'process.exit(0)'],
  ])('has every line, in order, where %s', async (_name, ending) => {
    expect(await written(ending)).toBe(LINES)
  })
})
