/**
 * oidc-provider with its in-memory adapter, doing what the demo does for its partner: JWT access tokens (ES256),
 * id_tokens (RS256), rotating refresh tokens, PKCE. A process of its own: `node test/long/load/oidc-provider.ts`. Prints its
 * port. `/mint?count=…&challenge=…&scope=…` answers codes, which people would have got by its pages.
 */
import Provider from 'oidc-provider'
import { createServer } from 'node:http'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { CLIENT, REDIRECT, SECRET } from './exchanges.ts'

const RESOURCE = 'http://api.example'

const jwkOf = (key: KeyObject, alg: string): object => ({
  ...key.export({ format: 'jwk' }),
  alg,
  use: 'sig',
  kid: alg,
})

const server = createServer()
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
const { port } = server.address() as AddressInfo

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: CLIENT,
      client_secret: SECRET,
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
    },
  ],
  jwks: {
    keys: [
      jwkOf(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey, 'RS256'),
      jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, 'ES256'),
    ],
  },
  cookies: { keys: ['bench'] },
  pkce: { required: () => true },
  rotateRefreshToken: true,
  ttl: { AccessToken: 900, AuthorizationCode: 60, IdToken: 900, RefreshToken: 2_592_000, Grant: 2_592_000 },
  findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => RESOURCE,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'fund.read',
        audience: RESOURCE,
        accessTokenTTL: 900,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
})

async function mint(count: number, challenge: string, scope: string): Promise<string[]> {
  const client = await provider.Client.find(CLIENT)
  const grant = new provider.Grant({ accountId: 'alice', clientId: CLIENT })
  grant.addOIDCScope('openid offline_access')
  grant.addResourceScope(RESOURCE, 'fund.read')
  const grantId = await grant.save()
  const codes = Array.from({ length: count }, () =>
    new provider.AuthorizationCode({
      accountId: 'alice',
      client,
      grantId,
      scope,
      redirectUri: REDIRECT,
      resource: RESOURCE,
      codeChallenge: challenge,
      codeChallengeMethod: 'S256',
      authTime: Math.floor(Date.now() / 1000),
    }).save(),
  )
  return Promise.all(codes)
}

provider.use(async (context, next) => {
  if (context.path !== '/mint') return next()
  const { count = '1', challenge = '', scope = '' } = context.query
  context.body = await mint(Number(count), challenge, scope)
})
server.on('request', provider.callback())
process.stdout.write(`${port}\n`)
