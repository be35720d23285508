import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { configFiles } from '../../support/config-files.ts'
import { ROOT } from '../../support/spawn-postern.ts'

/**
 * Runs a program in a process of its own, since the test runner has a way of its own to import. It knows the functions
 * of import-file.ts, `write(name, text)`, `at(name)` and `say(value)`; answers what it says.
 */
function said(files: Readonly<Record<string, string>>, program: string): unknown[] {
  const folder = configFiles(files)('.')
  const code = `
    import { writeFileSync } from 'node:fs'
    import { join } from 'node:path'
    const { importFile, contentsNow, contentsAsLoaded } = await import('${ROOT}/src/base/config/modules/import-file.ts')
    const at = (name) => join(${JSON.stringify(folder)}, name)
    const write = (name, text) => writeFileSync(at(name), text)
    const said = []
    const say = (value) => said.push(value)
    const made = async (name) => (await importFile(at(name))).default
    ${program}
    console.log(JSON.stringify(said))`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' })
  return JSON.parse(output) as unknown[]
}

describe('C8.1 the files of a module', () => {
  it('takes up code that has changed, its own and what it imports by relative names', () => {
    const files = {
      'module.ts': "import { word } from './lib/word.ts'\nexport default `one ${word}` as string\n",
      'lib/word.ts': "export const word: string = 'a'\n",
    }
    const program = `
      say(await made('module.ts'))
      write('lib/word.ts', "export const word: string = 'b'")
      say(await made('module.ts'))
      write('module.ts', "export default 'two' as string")
      say(await made('module.ts'))`
    expect(said(files, program)).toEqual(['one a', 'one b', 'two'])
  })

  it('takes up CommonJS that has changed', () => {
    const files = {
      'module.cjs': "module.exports = require('./word.cjs')",
      'word.cjs': "module.exports = 'a'",
    }
    const program = `
      say(await made('module.cjs'))
      write('word.cjs', "module.exports = 'b'")
      say(await made('module.cjs'))
      write('word.cjs', "module.exports = 'c'")
      say(await made('module.cjs'))`
    expect(said(files, program)).toEqual(['a', 'b', 'c'])
  })

  it('is one import as long as nothing has changed, and tells by contents whether something has', () => {
    const files = { 'module.mjs': "import './beside.mjs'\nexport default {}", 'beside.mjs': '' }
    const program = `
      const first = await made('module.mjs')
      const isSame = () => contentsNow(at('module.mjs')) === contentsAsLoaded(at('module.mjs'))
      write('beside.mjs', '')
      say([isSame(), (await made('module.mjs')) === first])
      write('beside.mjs', '// more')
      say([isSame(), (await made('module.mjs')) === first, isSame()])`
    expect(said(files, program)).toEqual([
      [true, true],
      [false, false, true],
    ])
  })

  it('can be imported once it is mended', () => {
    const program = `
      say(await made('module.mjs').catch((error) => error.code))
      write('absent.mjs', '')
      say(await made('module.mjs'))`
    expect(said({ 'module.mjs': "import './absent.mjs'\nexport default 1" }, program)).toEqual([
      'ERR_MODULE_NOT_FOUND',
      1,
    ])
  })
})
