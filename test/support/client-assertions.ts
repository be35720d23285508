import { randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Configuration } from '../../src/operate/settings/configuration.ts'

/** A key of a client, as its owner has it. */
export interface ClientKey {
  readonly alg: string
  readonly privateKey: CryptoKey
  /** As the client's record has it. */
  readonly jwk: JWK
}

export async function makeClientKey(alg = 'ES256', members: object = {}): Promise<ClientKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, privateKey, jwk: { ...(await exportJWK(publicKey)), ...members } }
}

export interface AssertionOptions {
  readonly client?: string
  readonly audience?: string | readonly string[]
  /** Milliseconds since the epoch. */
  readonly now?: number
  /** Over those of a good assertion; undefined takes one away. */
  readonly claims?: object
  readonly header?: Readonly<Record<string, unknown>>
}

/** An assertion of RFC 7523, good for a minute. */
export function assertion(key: ClientKey, options: AssertionOptions = {}): Promise<string> {
  const { client = 'acme-books', audience = 'http://id.test', now = Date.now(), claims, header } = options
  const seconds = Math.floor(now / 1000)
  const aud = typeof audience === 'string' ? audience : [...audience]
  const all = { iss: client, sub: client, aud, iat: seconds, exp: seconds + 60, jti: randomUUID(), ...claims }
  return new SignJWT(all).setProtectedHeader({ alg: key.alg, ...header }).sign(key.privateKey)
}

/** The parameters of a request that a client proves by it. */
export const assertedBy = (jws: string) => ({
  client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
  client_assertion: jws,
})

/** The demo, with the client `signer`, of which alice is a customer. */
export const withSigner =
  (keys: object, server: Partial<Configuration['server']> = {}) =>
  (loaded: Configuration): Configuration => {
    const { clients, users } = loaded.directory as unknown as Record<
      'clients' | 'users',
      Record<string, object>
    >
    const signer = { ...clients['acme-books'], secrets: [], ...keys }
    const alice = { ...users['alice'], customers: ['acme-books', 'signer'] }
    const directory = {
      ...loaded.directory,
      // Off loopback nobody serves the demo's secrets.
      clients: server.authUrl === undefined ? { ...clients, signer } : { signer },
      users: server.authUrl === undefined ? { ...users, alice } : {},
    } as unknown as Configuration['directory']
    return { ...loaded, directory, server: { ...loaded.server, ...server } }
  }
