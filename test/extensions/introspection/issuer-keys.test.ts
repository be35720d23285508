import { describe, expect, it, onTestFinished } from 'vitest'
import { extension } from '../../../src/extensions/introspection/extension.ts'
import { IssuerKeys } from '../../../src/identity/keys/issuers/issuer-keys.ts'
import { makeIssuerKey } from '../../support/foreign-issuer.ts'
import { INTROSPECTION, OPENID, startIssuerServer } from '../../support/issuer-server.ts'
import { movableClock } from '../../support/movable-clock.ts'

const key = await makeIssuerKey('a')

function openKeys(): IssuerKeys {
  const keys = new IssuerKeys(movableClock(), { note: () => undefined }, extension.opaqueTokens)
  onTestFinished(() => keys.close())
  return keys
}

/** A source as a configuration has it: its type does not tell the keys of extensions. */
const withIt = (source: { readonly issuer: string; readonly introspection: object }) => source

describe('C11.2 the keys of an issuer that introspects', () => {
  it('C11.2 what introspects is kept with every reload that says the same of it, and ended with others', async () => {
    const keys = openKeys()
    const server = await startIssuerServer([key.jwk])
    const introspection = { clientId: 'postern', clientSecret: 'secret' }
    const source = { issuer: server.url, introspection }
    const found = keys.opaqueVerifierOf(source)
    expect(keys.opaqueVerifierOf({ issuer: server.url })).toBeUndefined()
    keys.keepOnly([source])
    expect(keys.opaqueVerifierOf(withIt({ ...source, introspection: { ...introspection } }))).toBe(found)
    const other = { ...source, introspection: { ...introspection, clientSecret: 'another' } }
    expect(keys.opaqueVerifierOf(other)).not.toBe(found)
    keys.keepOnly([other])
    expect(keys.opaqueVerifierOf(source)).not.toBe(found)
  })

  it('C4.15 the endpoint of introspection is as the metadata says; without it, nothing can be told', async () => {
    const keys = openKeys()
    const server = await startIssuerServer([key.jwk])
    const introspection = { clientId: 'postern', clientSecret: 'secret' }
    const endpoint = () => keys.of(withIt({ issuer: server.url, introspection })).endpoint()
    expect(await endpoint()).toBe(`${server.url}${INTROSPECTION}`)
    const without = await startIssuerServer([key.jwk])
    without.answers.set(OPENID, { issuer: without.url, jwks_uri: `${without.url}/keys` })
    await expect(keys.of(withIt({ issuer: without.url, introspection })).endpoint()).rejects.toMatchObject({
      code: 'token_judge_unavailable',
    })
  })
})
