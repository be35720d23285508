import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'

const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')

describe('postern init --from', () => {
  it('a description of init --from that is no UTF-8 is refused by its line; a part of it costs its schema', async () => {
    const text = `openapi: 3.1.0
info: { title: Caf\u00e9, version: '1' }
paths:
  /orders:
    post:
      requestBody: { content: { application/json: { schema: { $ref: 'order.yaml' } } } }
      responses: { '204': { description: Made } }
`
    const at = configFiles({ 'api.yaml': latin1(text), 'order.yaml': latin1('title: Caf\u00e9') })
    const from = (folder: string) => runVerb(['init', at(folder), '--from', at('api.yaml'), '--verbose'])
    expect((await from('none')).stderr).toContain(
      'api.yaml cannot be read (line 2 is not UTF-8: save the file as UTF-8)',
    )
    writeFileSync(at('api.yaml'), `\ufeff${text}`)
    const { stdout, stderr } = await from('made')
    expect(stdout + stderr).toContain('order.yaml')
    expect(readFileSync(join(at('made'), 'postern.yaml'), 'utf8')).toContain('orders')
  })
})
