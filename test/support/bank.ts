import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { type ClientKey, makeClientKey } from './client-assertions.ts'

/** Where the bank's people come back to. */
export const BANK_CALLBACK = 'https://bank.test/callback'

/** A client that is held to FAPI 2.0, and the private parts of its keys. */
export interface Bank {
  readonly id: string
  readonly keys: Readonly<Record<'ES256' | 'PS256' | 'Ed25519' | 'RS256', ClientKey>>
}

export async function makeBank(id: string): Promise<Bank> {
  const key = (alg: string): Promise<ClientKey> => makeClientKey(alg, { kid: `${id}-${alg}` })
  const [ES256, PS256, Ed25519, RS256] = await Promise.all(
    ['ES256', 'PS256', 'Ed25519', 'RS256'].map((alg) => key(alg)),
  )
  return { id, keys: { ES256: ES256!, PS256: PS256!, Ed25519: Ed25519!, RS256: RS256! } }
}

/** For `change`: the banks are clients, with the rights of Ledgerline. */
export function withBanks(banks: readonly Bank[], configuration: Configuration): Configuration {
  const { directory } = configuration
  const ledgerline = directory.clients['ledgerline']!
  const entries = banks.map(({ id, keys }) => [
    id,
    {
      ...ledgerline,
      name: 'Bank',
      secrets: [],
      authentication: ['private_key_jwt'],
      redirectUris: [BANK_CALLBACK],
      jwks: Object.values(keys).map(({ jwk }) => jwk),
      profile: 'fapi2' as const,
    },
  ])
  const clients = { ...directory.clients, ...(Object.fromEntries(entries) as typeof directory.clients) }
  return { ...configuration, directory: { ...directory, clients } }
}
