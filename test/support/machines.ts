import { createHash } from 'node:crypto'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { postForm, type OAuthAnswer } from './oauth.ts'

type Clients = Configuration['directory']['clients']
type ConfiguredClient = Clients[string]

/** A client whose secret is its id with `-secret`, as those of the demo. */
export function withClient(
  loaded: Configuration,
  id: string,
  change: Partial<ConfiguredClient>,
): Configuration {
  const digest = createHash('sha256').update(`${id}-secret`).digest('base64url')
  const bare = {
    ...loaded.directory.clients['acme-books'],
    agreement: undefined,
    defaultScope: undefined,
    requirePkce: false,
  }
  const client: object = { ...bare, name: id, secrets: [`sha256:${digest}`], ...change }
  const clients = { ...loaded.directory.clients, [id]: client as ConfiguredClient }
  return { ...loaded, directory: { ...loaded.directory, clients } }
}

/** Beside the demo's clients: a machine of ACME alone, and one of ACME and GLOBEX. */
export const withMachines = (loaded: Configuration): Configuration => {
  const machine = { kind: 'machine', grants: ['client_credentials'], scopes: ['fund.maintain'] } as const
  const one = withClient(loaded, 'nightly', { ...machine, businesses: ['ACME'] })
  return withClient(one, 'both', { ...machine, businesses: ['ACME', 'GLOBEX'] })
}

/** Asks for a token of a machine, by the client credentials grant. */
export const askAsMachine = (
  service: { readonly authUrl: string },
  params: Readonly<Record<string, string>> = {},
  client = 'nightly',
): Promise<OAuthAnswer> =>
  postForm(service, '/connect/token', {
    client,
    params: { grant_type: 'client_credentials', scope: 'fund.read', ...params },
  })
