import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'

const DEMO = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url))

/** `postern check --json` of the demo with `changes`; its files are called by their names only. */
async function check(
  changes: string,
  {
    options = [],
    calls,
    env = {},
  }: { options?: string[]; calls?: string; env?: Record<string, string> } = {},
) {
  const at = configFiles({
    'my.yaml': `extends: ${DEMO}\n${changes}`,
    'access.yaml': `calls:\n${calls ?? ''}`,
  })
  const expected = calls === undefined ? [] : ['--expect', at('access.yaml')]
  const args = ['check', at('my.yaml'), '--json', ...expected, ...options]
  const { code, stdout, stderr } = await runVerb(args, { env: { POSTERN_DATA: at('nothing'), ...env } })
  const answer: unknown = JSON.parse(stdout.replaceAll(`${at('')}/`, '').replaceAll(at(''), ''))
  return { code, stderr, answer }
}

describe('postern check --json', () => {
  it('C11.6.1 tells of a configuration without problems that it can be served', async () => {
    const { code, stderr, answer } = await check('')
    expect([code, stderr]).toEqual([0, ''])
    expect(answer).toEqual({ file: 'my.yaml', canBeServed: true, problems: [] })
  })

  it('C11.6.1 tells each problem with its place, and nothing on standard error', async () => {
    const { code, stderr, answer } = await check(
      'server: { listn: 127.0.0.1:0 }\nareas: { fund-data: { backend: smaple } }',
      { env: { POSTERN_PORT: 'http' } },
    )
    expect([code, stderr]).toEqual([2, ''])
    expect(answer).toEqual({
      file: 'my.yaml',
      canBeServed: false,
      problems: [
        {
          ...{ severity: 'error', file: 'my.yaml', line: 2, path: 'server.listn' },
          ...{ message: 'is not a known key here', hint: 'did you mean "listen"?' },
        },
        {
          ...{ severity: 'error', file: 'my.yaml', line: 3, path: 'areas.fund-data.backend' },
          ...{ message: 'names no backend: "smaple"', hint: 'did you mean "sample"?' },
        },
        {
          ...{ severity: 'error', file: 'environment', line: null, path: 'POSTERN_PORT', hint: null },
          message: 'expected a port from 0 to 65535, got "http"',
        },
      ],
    })
  })

  it('C11.6.1 tells warnings too, which fail with --strict only', async () => {
    const spare = 'scopes: { spare: { description: Spare } }'
    const problems = [
      {
        ...{ severity: 'warning', file: 'my.yaml', line: 2, path: 'scopes.spare', hint: null },
        message: 'is not used: no action needs it, and no client or role has it',
      },
    ]
    expect(await check(spare)).toMatchObject({ code: 0, answer: { canBeServed: true, problems } })
    expect(await check(spare, { options: ['--strict'] })).toMatchObject({
      code: 1,
      answer: { canBeServed: true, problems },
    })
  })

  it('C11.6.1 tells of a file that is not there', async () => {
    const { code, stdout } = await runVerb(['check', '/nowhere/my.yaml', '--json'])
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toEqual({
      file: '/nowhere/my.yaml',
      canBeServed: false,
      problems: [
        {
          ...{ severity: 'error', file: '/nowhere/my.yaml', line: 1, path: null, hint: null },
          message: 'cannot be read (ENOENT: there is no such file or folder)',
        },
      ],
    })
  })

  it('C14.6 tells the problems of a file of expectations with those of the configuration', async () => {
    const calls =
      '  - { call: GET /api/1.0/b/ACME/fund-data/fund-list, client: acme-boks, user: alice, expect: allowed }\n'
    const { code, answer } = await check('', { calls })
    expect(code).toBe(2)
    expect(answer).toEqual({
      file: 'my.yaml',
      canBeServed: true,
      problems: [
        {
          ...{ severity: 'error', file: 'access.yaml', line: 2, path: 'calls[0].client' },
          ...{ message: 'names no client: "acme-boks"', hint: 'did you mean "acme-books"?' },
        },
      ],
    })
  })
})
