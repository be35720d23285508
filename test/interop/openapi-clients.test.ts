import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import openapiTS, { astToString } from 'openapi-typescript'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readDescription } from '../support/openapi.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const PROGRAM = readFileSync(join(ROOT, 'test/support/openapi-client.ts.txt'), 'utf8')
const TSCONFIG = {
  compilerOptions: {
    ...{ target: 'esnext', module: 'nodenext', strict: true, noUncheckedIndexedAccess: true, noEmit: true },
    ...{ allowImportingTsExtensions: true, skipLibCheck: true, types: ['node'], lib: ['esnext', 'dom'] },
  },
  files: ['program.ts'],
}

let gateway: StartedPostern
let folder: string
beforeAll(async () => {
  gateway = await startPostern()
  folder = mkdtempSync(join(tmpdir(), 'postern-client-'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  const document = JSON.stringify(await readDescription(gateway))
  writeFileSync(join(folder, 'api.ts'), astToString(await openapiTS(document)))
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await gateway.close()
})

const run = (...args: readonly string[]): Promise<{ readonly code: number; readonly out: string }> =>
  new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: folder }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : 1, out: stdout + stderr }),
    )
  })

const compile = (program: string) => {
  writeFileSync(join(folder, 'program.ts'), program)
  return run(join(ROOT, 'node_modules/typescript/bin/tsc'), '--project', folder)
}

describe('C11.3.2 clients that are made from the document', () => {
  it('C11.3.2 compile, and work in JSON, in XML and in a vendor type', async () => {
    expect(await compile(PROGRAM)).toEqual({ code: 0, out: '' })
    const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    const { code, out } = await run(join(folder, 'program.ts'), gateway.baseUrl, token)
    expect(code, out).toBe(0)
    const { xml, changedInXml, ...rest } = JSON.parse(out) as Record<string, unknown>
    expect(rest).toEqual({
      names: ['Harbour View Superannuation Fund', 'Bluegum Family Superannuation Fund'],
      ...{ total: 2, limit: 5, failure: 'API_NOT_FOUND', isMissing: true, channel: 'Email' },
      changed: [200, { Errors: [], Data: {} }],
      vendor: 'application/vnd.postern.action.v2+json; charset=utf-8',
    })
    expect(xml).toEqual([
      'application/xml; charset=utf-8',
      expect.stringMatching(/<ApiResponse[^]*<Code>SUPER1<\/Code>[^]*<Tags type="array"><Tag>audited<\/Tag>/),
    ])
    expect(changedInXml).toEqual([200, expect.stringContaining('<ApiResponse')])
  })

  it.each([
    ['a field that there is not', 'map(({ Name }) => Name)', 'map(({ Title }) => Title)'],
    ['a parameter that is missing', "path: { businessCode: 'ACME' }", 'path: {}'],
    ['a body with a value of another type', 'MemberLimit: 5', "MemberLimit: 'five'"],
    ['a code that the operation does not answer', "=== 'API_NOT_FOUND'", "=== 'API_NO_SUCH_CODE'"],
  ])(
    'C11.3.2 do not compile with %s',
    async (_name, right, wrong) => {
      expect(PROGRAM).toContain(right)
      const { code, out } = await compile(PROGRAM.replace(right, wrong))
      expect(code).toBe(1)
      expect(out).toContain('error TS')
    },
    60_000,
  )
})
