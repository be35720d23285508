import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OAuth2Server } from 'oauth2-mock-server'
import Provider from 'oidc-provider'
import { atEnd } from './shared.ts'

/** Issuers that others wrote, on loopback until the test ends. */

export const AUDIENCE = 'https://api.example'
export const BUSINESS = 'https://example.com/business'

export interface RealIssuer {
  /** Its `iss`. */
  readonly url: string
  /** A token of the client "app" by client credentials. */
  readonly token: (scope?: string) => Promise<string>
  /** Requests so far, by path. */
  readonly asked: (path: string) => number
}

type TokenFormat = 'jwt' | 'opaque'

const newKey = (kid: string): object => ({
  ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
  ...{ kid, alg: 'ES256', use: 'sig' },
})

const client = (id: string) => ({
  ...{ client_id: id, client_secret: `${id}-secret`, redirect_uris: [], response_types: [] },
  grant_types: ['client_credentials'],
})

const providerAt = (url: string, format: TokenFormat, kid: string): Provider =>
  new Provider(url, {
    clients: [client('app'), client('postern')],
    jwks: { keys: [newKey(kid)] },
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    cookies: { keys: ['test'] },
    ttl: { ClientCredentials: 600 },
    extraTokenClaims: () => ({ [BUSINESS]: 'ACME' }),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: () => ({
          ...{ scope: 'fund.read', audience: AUDIENCE, accessTokenFormat: format },
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })

/** oidc-provider. `rotate` replaces its keys by one new key, and all that it has issued. */
export async function startOidcProvider(
  format: TokenFormat,
): Promise<RealIssuer & { readonly rotate: () => void; readonly revoke: (token: string) => Promise<void> }> {
  let answer: RequestListener = () => undefined
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    answer(request, response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let rotations = 0
  const rotate = (): void => {
    answer = providerAt(url, format, `key-${rotations++}`).callback()
  }
  rotate()
  const post = async (path: string, form: Record<string, string>): Promise<Response> =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from('app:app-secret').toString('base64')}` },
      body: new URLSearchParams(form),
    })
  return {
    url,
    rotate,
    asked: (path) => asked.filter((each) => each === path).length,
    token: async (scope = 'fund.read') =>
      accessTokenOf(await post('/token', { grant_type: 'client_credentials', scope })),
    revoke: async (token) => {
      const { status } = await post('/token/revocation', { token })
      if (status !== 200) throw new Error(`not revoked: ${status}`)
    },
  }
}

/** oauth2-mock-server, whose tokens are as those of many products: `typ: JWT`, roles within a claim, `azp`. */
export async function startMockServer(
  roles: readonly string[],
): Promise<RealIssuer & { readonly addKey: () => Promise<void> }> {
  const server = new OAuth2Server()
  const asked: string[] = []
  await server.issuer.keys.generate('RS256')
  server.service.on('beforeTokenSigning', ({ payload }) => {
    const facts = { sub: 'ann', aud: AUDIENCE, azp: 'app', realm_access: { roles }, [BUSINESS]: 'ACME' }
    Object.assign(payload, facts)
  })
  server.service.on('beforeIntrospect', () => void asked.push('/introspect'))
  await server.start(0, '127.0.0.1')
  const url = `http://127.0.0.1:${server.address().port}`
  server.issuer.url = url
  atEnd(() => server.stop())
  return {
    url,
    asked: (path) => asked.filter((each) => each === path).length,
    token: async () => {
      const form = { grant_type: 'client_credentials' }
      return accessTokenOf(await fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams(form) }))
    },
    addKey: async () => {
      await server.issuer.keys.generate('RS256')
    },
  }
}

async function accessTokenOf(response: Response): Promise<string> {
  const { access_token: token } = (await response.json()) as { access_token?: unknown }
  if (typeof token !== 'string') throw new Error(`no token: ${response.status}`)
  return token
}
