import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { OAuth2Server } from 'oauth2-mock-server'
import Provider from 'oidc-provider'

/**
 * The issuers of the recipe sidecar-two-issuers, in a process of their own: `node two-issuers.ts PORT PORT`. The first
 * one (oauth2-mock-server) writes tokens as many products for staff do: `typ: JWT`, roles within `realm_access`. The
 * second one (oidc-provider) gives partners opaque tokens, and says at its introspection what they stand for.
 */

const [staffPort, partnersPort] = process.argv.slice(2).map(Number) as [number, number]
const AUDIENCE = 'https://api.example.com'
const BUSINESS = 'https://example.com/business'

/** The roles of the staff, by user name. */
const ROLES: Readonly<Record<string, readonly string[]>> = { ann: ['funds-reader', 'canteen'] }

async function startStaff(): Promise<void> {
  const staff = new OAuth2Server()
  await staff.issuer.keys.generate('RS256')
  staff.issuer.url = `http://127.0.0.1:${staffPort}`
  staff.service.on('beforeTokenSigning', ({ payload }) => {
    // Only access tokens say how the user logged in.
    if (payload['amr'] === undefined) return
    const roles = ROLES[String(payload['sub'])] ?? []
    Object.assign(payload, { aud: AUDIENCE, azp: 'portal', realm_access: { roles }, [BUSINESS]: 'ACME' })
  })
  await staff.start(staffPort, '127.0.0.1')
}

const client = (id: string, secret: string) => ({
  client_id: id,
  client_secret: secret,
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
})

function startPartners(): void {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const provider = new Provider(`http://127.0.0.1:${partnersPort}`, {
    clients: [client('acme-books', 'secret-of-acme-books'), client('postern', 'secret-of-postern')],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['recipe'] },
    extraTokenClaims: () => ({ [BUSINESS]: 'ACME' }),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      introspection: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => AUDIENCE,
        getResourceServerInfo: () => ({
          scope: 'fund.read',
          audience: AUDIENCE,
          accessTokenFormat: 'opaque',
        }),
      },
    },
  })
  createServer(provider.callback()).listen(partnersPort, '127.0.0.1')
}

startPartners()
await startStaff()
