import { createServer } from 'node:http'
import Provider from 'oidc-provider'

/** An oidc-provider for the recipe oauth2, in a process of its own: `node issuer.ts PORT`. It gives tokens to Postern, and tells the service what they are worth. */

const port = Number(process.argv[2])

const CLIENTS = [
  { client_id: 'postern', client_secret: 'secret-of-the-example' },
  { client_id: 'funds-service', client_secret: 'secret-of-the-service' },
].map((client) => ({
  ...client,
  scope: 'funds.read',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
}))

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: CLIENTS,
  scopes: ['funds.read'],
  cookies: { keys: ['recipe'] },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    introspection: { enabled: true, allowedPolicy: () => true },
  },
})
createServer(provider.callback()).listen(port, '127.0.0.1')
