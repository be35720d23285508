import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { runCommandLine } from '../../src/cli/command-line.ts'
import { configFiles } from '../support/config-files.ts'

const DEMO = fileURLToPath(new URL('../../config/demo.yaml', import.meta.url))

async function diff(changes: string, ...options: string[]) {
  const at = configFiles({ 'next.yaml': `extends: ${DEMO}\n${changes}` })
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const args = ['diff', DEMO, at('next.yaml'), ...options]
  const code = await runCommandLine(args, { env: {}, stdin: process.stdin, stdout, stderr })
  stdout.end()
  stderr.end()
  return { code, out: await text(stdout), err: await text(stderr) }
}

describe('postern diff', () => {
  it('says so where nobody gains or loses anything', async () => {
    expect(await diff('vendor: other')).toEqual({ code: 0, out: 'nobody gains or loses access\n', err: '' })
  })

  it('tells what clients gain and lose, by action and business', async () => {
    const { out } = await diff(
      'directory: { clients: { globex-ledger: { businesses: [ACME], scopes: [fund.details.read] } } }',
    )
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        'clients',
        '  - globex-ledger  GET fund-data/fund-detail (fund)  at GLOBEX',
        '  + globex-ledger  GET fund-data/fund-detail (fund)  at ACME',
        '  - globex-ledger  POST fund-data/fund-create (business)  at GLOBEX',
      ]),
    )
    expect(out).not.toContain('acme-books')
  })

  it('tells of roles what their scopes imply, and of users where they have which role', async () => {
    const { out } = await diff(`
directory:
  roles: { Read-only: { scopes: [fund.member.maintain] } }
  users: { bob: { access: { ACME: Read-only } }, carol: { disabled: true } }`)
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        'roles',
        '  + Read-only  POST member-data/member-detail/{memberId:uuid} (fund)',
        '  - Read-only  GET fund-data/fund-detail (fund)',
        'users',
        '  - carol  Administrator  at INITECH',
        '  + bob  Read-only  at ACME',
      ]),
    )
    expect(out).not.toContain('Read-only  GET member-data')
  })

  it('tells an action that asks for another scope', async () => {
    const { out } = await diff(`
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods: { GET: { scopes: { all: [fund.read, business.fund.create] } } }`)
    expect(out).toContain('  - Read-only  GET fund-data/fund-list (business)\n')
    expect(out).not.toContain('- Administrator  GET fund-data/fund-list')
  })

  it('writes JSON for programs', async () => {
    const { out } = await diff('directory: { clients: { acme-books: { disabled: true } } }', '--json')
    const { gained, lost } = JSON.parse(out)
    expect(gained).toEqual([])
    expect(lost).toContainEqual({
      kind: 'client',
      who: 'acme-books',
      what: 'GET fund-data/fund-list (business)',
      where: 'ACME',
    })
  })

  it('refuses a file that would not be served', async () => {
    const { code, err } = await diff('vendor: NO')
    expect(code).toBe(2)
    expect(err).toContain('vendor')
  })
})
