import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'

const DEMO = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))

async function check(changes: string, ...options: readonly string[]) {
  const at = configFiles({ 'my.yaml': `extends: ${DEMO}\n${changes}` })
  const { code, stdout, stderr } = await runVerb(['check', at('my.yaml'), ...options], {
    env: { POSTERN_DATA: at('nothing') },
  })
  return { code, stdout, stderr: stderr.replaceAll(at('my.yaml'), 'my.yaml') }
}

const action = (keys: string): string =>
  `actions:\n  - { level: business, area: fund-data, action: search, ` +
  `methods: { GET: { scopes: { any: [fund.read] }, ${keys} } } }`

describe('postern check --strict', () => {
  it('C11.3.7 lists operations with what they do not tell, and exits with 1', async () => {
    const { code, stderr } = await check(action('summary: Search'), '--strict')
    expect(code).toBe(1)
    expect(stderr).toContain('my.yaml:3')
    expect(stderr).toContain('actions[0].methods.GET  does not tell clients its description, data, examples')
  })

  it('C11.3.7 asks for no data where answers have no envelope', async () => {
    const { code, stderr } = await check(action('produces: [text/csv]'), '--strict')
    expect(code).toBe(1)
    expect(stderr).toContain('does not tell clients its summary, description (warning)')
  })

  it('C11.3.7 lists nothing where everything is told, and nothing without --strict', async () => {
    expect(await check('', '--strict')).toMatchObject({ code: 0, stderr: '' })
    expect(await check(action('summary: Search'))).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('the section openapi', () => {
  it('C11.3.6 hides no area that there is not', async () => {
    const { code, stderr } = await check('openapi: { hide: [nothing] }')
    expect(code).toBe(2)
    expect(stderr).toContain('openapi.hide[0]  names no area: "nothing" — there are fund-data, member-data')
  })
})
