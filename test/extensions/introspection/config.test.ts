import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { checkIntrospection } from '../../../src/extensions/introspection/schema.ts'
import type { Configuration } from '../../../src/operate/settings/configuration.ts'
import { SETTINGS } from '../../support/settings.ts'
import { configFiles } from '../../support/config-files.ts'
import { startIssuerServer } from '../../support/issuer-server.ts'

const SIDECAR = fileURLToPath(new URL('../../../config/sidecar.yaml', import.meta.url))
const ISSUER = { issuer: 'https://issuer.example', jwks: 'https://issuer.example/keys' }

function problems(...issuers: readonly object[]): readonly string[] {
  const found = new Problems()
  const all = issuers.map((issuer) => ({ ...ISSUER, ...issuer }))
  checkIntrospection({ issuers: all } as unknown as Configuration, found)
  return found.list.map(({ path, severity }) => `${severity} ${path.join('.')}`)
}

describe('the configuration of an issuer that introspects', () => {
  it('C11.2 one issuer at most introspects, since an opaque token does not say whose it is', () => {
    const introspection = { clientId: 'postern', clientSecret: 'secret' }
    const other = { name: 'other', issuer: 'https://other.example' }
    expect(problems({ name: 'one', introspection }, other)).toEqual([])
    const twice = problems({ name: 'one', introspection }, { ...other, introspection })
    expect(twice).toEqual(['error issuers.1.introspection'])
  })

  it('T3.5 tokens and the secret for introspection go over https, or stay on this machine', () => {
    const introspection = { clientId: 'postern', clientSecret: 'secret' }
    for (const url of ['https://issuer.example/introspect', 'http://127.0.0.1/introspect'])
      expect(problems({ introspection: { ...introspection, url } })).toEqual([])
    const url = 'http://issuer.example/introspect'
    expect(problems({ introspection: { ...introspection, url } })).toEqual([
      'error issuers.0.introspection.url',
    ])
  })

  it('T3.5 the metadata that names the endpoint is read over https', () => {
    const introspection = { clientId: 'postern', clientSecret: 'secret' }
    const issuer = 'http://issuer.example'
    expect(problems({ issuer, introspection })).toEqual(['error issuers.0.issuer'])
    // Without a key set it is read anyway, and the core says so.
    expect(problems({ issuer, introspection, jwks: undefined })).toEqual([])
  })

  it('C11.2 is checked without a connection to any issuer', async () => {
    const server = await startIssuerServer()
    const introspection = `{ clientId: a, clientSecret: { env: INTROSPECTION_SECRET } }`
    const issuers = `issuers: [{ issuer: '${server.url}', audience: a, introspection: ${introspection} }]`
    const file = configFiles({ 'my.yaml': `extends: ${SIDECAR}\n${issuers}\n` })('my.yaml')
    expect((await SETTINGS.check(file, { INTROSPECTION_SECRET: 'secret' })).list).toEqual([])
    expect(server.requests).toEqual([])
  })
})
