import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'

const CONFIG = fileURLToPath(new URL('../../config/', import.meta.url))
const DEMO = `${CONFIG}demo.yaml`

interface Given {
  readonly changes?: string
  readonly data?: string
  readonly options?: readonly string[]
}

/** Checks the demo with `changes` against these rows. The file is called `access.yaml` in what is told. */
async function check(calls: string, { changes = '', data, options = [] }: Given = {}) {
  const at = configFiles({ 'my.yaml': `extends: ${DEMO}\n${changes}`, 'access.yaml': `calls:\n${calls}` })
  const env = { POSTERN_DATA: data ?? at('nothing') }
  const args = ['check', at('my.yaml'), '--expect', at('access.yaml'), ...options]
  const { code, stdout, stderr } = await runVerb(args, { env })
  const named = (text: string): string => text.replaceAll(at('access.yaml'), 'access.yaml')
  return { code, stdout: named(stdout), stderr: named(stderr) }
}

const LIST = 'call: GET /api/1.0/b/ACME/fund-data/fund-list'
const CREATE = 'call: POST /api/1.0/b/ACME/fund-data/fund-create'
const ALICE = 'client: acme-books, user: alice, target: b/ACME'

describe('postern check --expect', () => {
  it('C14.6 finds the demo as config/access.yaml expects it', async () => {
    const env = { POSTERN_DATA: await dataFolder() }
    const { code, stdout } = await runVerb(['check', DEMO, '--expect', `${CONFIG}access.yaml`], { env })
    expect(stdout).toMatch(/access\.yaml: \d+ calls decided as expected\n$/)
    expect(code).toBe(0)
  })

  it('C14.6 tells each mismatch with its row and line, what was expected, what is, and what would change it', async () => {
    const { code, stdout } = await check(`  - { ${LIST}, ${ALICE}, expect: allowed }
  - { ${CREATE}, ${ALICE}, scope: fund.read, expect: allowed }
  - { ${LIST}, ${ALICE}, expect: insufficient_scope }
`)
    expect(code).toBe(1)
    const lines = stdout.split('\n').slice(1)
    expect(lines[0]).toBe(
      'access.yaml:3  calls[1]  POST /api/1.0/b/ACME/fund-data/fund-create, by acme-books for alice at b/ACME: expected allowed, is insufficient_scope',
    )
    expect(lines[1]).toContain('With business.fund.create it would be enough.')
    expect(lines[2]).toBe(
      'access.yaml:4  calls[2]  GET /api/1.0/b/ACME/fund-data/fund-list, by acme-books for alice at b/ACME: expected insufficient_scope, is allowed',
    )
    expect(lines[3]).toContain("The token's scope is enough.")
    expect(lines.slice(-2)).toEqual(['access.yaml: 1 of 3 calls decided as expected', ''])
  })

  it('C14.6 notices that a change of the configuration lets somebody in', async () => {
    const rows = `  - { call: POST /api/1.0/b/GLOBEX/fund-data/fund-create, client: globex-ledger, user: bob, target: b/GLOBEX, expect: insufficient_scope }\n`
    expect((await check(rows)).code).toBe(0)
    const changes = 'directory: { roles: { Read-only: { scopes: [fund.read, business.fund.create] } } }'
    const { code, stdout } = await check(rows, { changes })
    expect(code).toBe(1)
    expect(stdout).toContain('expected insufficient_scope, is allowed')
  })

  it('C14.6 tells why no token would be given', async () => {
    const { stdout } =
      await check(`  - { ${LIST}, client: acme-books, user: bob, target: b/ACME, expect: allowed }
  - { ${LIST}, client: globex-ledger, user: alice, target: b/ACME, expect: allowed }
`)
    expect(stdout).toContain('expected allowed, is invalid_scope')
    expect(stdout).toContain('expected allowed, is invalid_grant')
    expect(stdout).toContain('the user is none of this client')
  })

  it('C14.6 judges a call by its body only where a row has one, or expects a reason of a body', async () => {
    const { code, stdout } = await check(`  - { ${CREATE}, ${ALICE}, expect: allowed }
  - { ${CREATE}, ${ALICE}, expect: body_missing }
  - { ${CREATE}, ${ALICE}, body: { Code: NEW, Name: New }, expect: allowed }
  - { ${CREATE}, ${ALICE}, body: { Code: 1 }, expect: body_invalid }
  - { ${CREATE}, ${ALICE}, body: 'a,b', contentType: text/csv, expect: unsupported_media_type }
  - { ${LIST}, ${ALICE}, accept: image/png, expect: not_acceptable }
`)
    expect(stdout).toContain('6 calls decided as expected')
    expect(code).toBe(0)
  })

  it('C14.6 judges a call by declared parameters only where a row has a query, or expects query_invalid', async () => {
    const declared = 'parameters: { limit: { type: integer, required: true } }'
    const changes = `actions:
  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] }, ${declared} } } }
  - { level: business, area: fund-data, action: fund-create, methods: { POST: { scopes: { any: [business.fund.create] }, body: { schema: { required: [Code], properties: { Code: { type: string } } } }, ${declared} } } }
`
    const rows = `  - { ${LIST}, ${ALICE}, expect: allowed }
  - { ${LIST}, ${ALICE}, expect: query_invalid }
  - { ${LIST}?limit=5, ${ALICE}, expect: allowed }
  - { ${LIST}?limit=x, ${ALICE}, expect: query_invalid }
  - { ${LIST}?other=1, ${ALICE}, expect: query_invalid }
  - { ${CREATE}, ${ALICE}, body: { Code: 1 }, expect: body_invalid }
  - { ${CREATE}?limit=x, ${ALICE}, body: { Code: 1 }, expect: query_invalid }
`
    const { code, stdout } = await check(rows, { changes })
    expect(stdout).toContain('7 calls decided as expected')
    expect(code).toBe(0)
  })

  it('C14.6 knows clients and users of the store', async () => {
    const data = await dataFolder()
    const env = { POSTERN_DATA: data }
    const add = 'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME'
    await runVerb([...add.split(' '), '--scope', 'fund.read'], { env })
    await runVerb('user add dora --customer tally --access ACME=Administrator'.split(' '), {
      ...{ env, input: 'doras-long-password\n' },
    })
    const { code, stderr } = await check(
      `  - { ${LIST}, client: tally, user: dora, target: b/ACME, expect: allowed }
  - { ${CREATE}, client: tally, user: dora, target: b/ACME, expect: insufficient_scope }\n`,
      { data },
    )
    expect(stderr).toContain('including 1 client and 1 user of the store')
    expect(code).toBe(0)
  })

  it('C14.6 says what a report-only area answers: that the call is allowed', async () => {
    const { code } = await check(`  - { ${LIST}, expect: allowed }\n`, {
      changes:
        'backends: { up: { kind: http, target: "http://127.0.0.1:9" } }\nareas: { fund-data: { backend: up, mode: report-only } }',
    })
    expect(code).toBe(0)
  })

  it('C14.6 refuses unknown names before anything is compared', async () => {
    const { code, stdout, stderr } = await check(
      `  - { ${LIST}, client: acme-boks, user: alice, expect: allowed }\n`,
    )
    expect(code).toBe(2)
    expect(stdout).not.toContain('as expected')
    expect(stderr).toContain(
      'access.yaml:2  calls[0].client  names no client: "acme-boks" — did you mean "acme-books"?',
    )
    expect(stderr).toContain('access.yaml: 1 problem')
  })

  it('C14.6 writes JSON for programs', async () => {
    const { code, stdout } = await check(`  - { ${LIST}, ${ALICE}, expect: unknown_place }\n`, {
      options: ['--json'],
    })
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({
      calls: 1,
      mismatches: [
        {
          ...{ file: 'access.yaml', line: 2, row: 0, client: 'acme-books', user: 'alice', target: 'b/ACME' },
          ...{ expected: 'unknown_place', actual: 'allowed', words: expect.any(String) },
        },
      ],
    })
  })

  it('C14.6 takes callers at their word in a sidecar, whose rows say the scope', async () => {
    const calls = (more: string): string =>
      `calls:\n  - { call: GET /api/1.0/b/ACME/fund-data/fund-list, client: any, user: some-subject, target: b/ACME, ${more} expect: allowed }\n`
    const run = async (more: string) => {
      const at = configFiles({ 'access.yaml': calls(more) })
      return runVerb(['check', `${CONFIG}sidecar.yaml`, '--expect', at('access.yaml')], {
        env: { UPSTREAM_URL: 'http://127.0.0.1:9' },
      })
    }
    expect((await run('')).stderr).toContain(
      'calls[0].scope  is missing: a sidecar does not know what its issuer would grant',
    )
    expect(await run('scope: fund.read,')).toMatchObject({ code: 0 })
  })

  it('C14.6 checks nothing of a configuration that has problems', async () => {
    const { code, stdout } = await check(`  - { ${LIST}, expect: allowed }\n`, { changes: 'vendor: NO' })
    expect([code, stdout]).toEqual([2, ''])
  })
})
