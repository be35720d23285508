import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runCommandLine } from '../../../src/cli/command-line.ts'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { typing } from '../../support/typed-terminal.ts'

const emptyFolder = (): string => dirname(configFiles({})('any'))

describe('postern init --from', () => {
  it.each([
    [['--fund-parameter', 'fundCode'], 'expected --from beside it'],
    [['--business-in', 'identity'], 'expected --from beside it'],
    [['--from', 'x.yaml', '--business-parameter', 'org'], 'write --business-in path:org'],
  ])('C10 refuses %j, says why, and writes nothing', async (options, why) => {
    const folder = emptyFolder()
    const { code, stdout, stderr } = await runVerb(['init', folder, ...options])
    expect(stderr).toContain(why)
    expect([code, stdout]).toEqual([2, ''])
    expect(() => readFileSync(join(folder, 'postern.yaml'))).toThrow('ENOENT')
  })

  it('C10 lists on a terminal where the service may take the business from, and asks what stands there', async () => {
    const parameters = [{ name: 'xero-tenant-id', in: 'header', schema: { type: 'string' } }]
    const get = { parameters, responses: { '200': { description: 'ok' } } }
    const paths = { '/a': { get }, '/b': { get: { responses: get.responses } } }
    const from = configFiles({
      'api.json': JSON.stringify({ openapi: '3.0.3', info: { title: 'A', version: '1' }, paths }),
    })('api.json')
    const folder = emptyFolder()
    const { terminal, shown } = typing(['7=x', '1={business.tenant}', '', 'ACME GLOBEX', '', '', 't-7', ''])
    expect(await runCommandLine(['init', folder, '--from', from], terminal)).toBe(0)
    expect(shown()).toContain('   1  header:xero-tenant-id (1 operation)\n  identity: it reads')
    expect(shown()).toContain('expected header:NAME, path:NAME')
    const text = readFileSync(join(folder, 'postern.yaml'), 'utf8')
    expect(text.match(/xero-tenant-id: "\{business\.tenant\}"/g)).toHaveLength(2)
    expect(text.match(/values: .*/g)).toEqual([
      'values: { "tenant": "t-7" }',
      'values: { "tenant": "GLOBEX" }',
    ])
  })

  it('C10 keeps the path of the described address beside --upstream, unless that has one', async () => {
    const get = { responses: { '200': { description: 'ok' } } }
    const servers = [{ url: 'https://a.example/v2' }]
    const described = {
      openapi: '3.0.3',
      info: { title: 'A', version: '1' },
      servers,
      paths: { '/a': { get } },
    }
    const from = configFiles({ 'api.json': JSON.stringify(described) })('api.json')
    for (const [given, written] of [
      ['http://127.0.0.1:9000', 'http://127.0.0.1:9000/v2'],
      ['http://127.0.0.1:9000/', 'http://127.0.0.1:9000/'],
      ['http://127.0.0.1:9000/v3', 'http://127.0.0.1:9000/v3'],
    ] as const) {
      const folder = emptyFolder()
      await runVerb(['init', folder, '--from', from, '--upstream', given])
      expect(readFileSync(join(folder, 'postern.yaml'), 'utf8')).toContain(`default: "${written}" }`)
    }
  })
})
