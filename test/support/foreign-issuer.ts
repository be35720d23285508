import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose'
import { atEnd } from './shared.ts'
import type { ForeignClaims } from '../../src/gateway/decide/claims.ts'

/** A key of a foreign issuer, as its owner has it. */
export interface IssuerKey {
  readonly kid: string
  readonly privateKey: CryptoKey
  /** As published. */
  readonly jwk: JWK
  /** With its private members. */
  readonly privateJwk: JWK
}

export async function makeIssuerKey(kid: string, alg: 'ES256' | 'RS256' = 'ES256'): Promise<IssuerKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const named = { kid, alg, use: 'sig' }
  return {
    kid,
    privateKey,
    jwk: { ...(await exportJWK(publicKey)), ...named },
    privateJwk: { ...(await exportJWK(privateKey)), ...named },
  }
}

export const AUDIENCE = 'https://api.example'
export const ISSUER = 'https://issuer.example'

/** An access token by RFC 9068 that may list ACME's funds. `now` in milliseconds. */
export const foreignToken = (
  { kid, privateKey, jwk }: IssuerKey,
  now = Date.now(),
  issuer = ISSUER,
): Promise<string> =>
  new SignJWT({ client_id: 'app', scope: 'fund.read target:b/ACME', jti: `${kid}-${now}` })
    .setProtectedHeader({ alg: String(jwk.alg), typ: 'at+jwt', kid })
    .setIssuer(issuer)
    .setSubject('someone')
    .setAudience(AUDIENCE)
    .setIssuedAt(Math.floor(now / 1000))
    .setExpirationTime(Math.floor(now / 1000) + 3600)
    .sign(privateKey)

/** How the claims of an issuer are read by default. */
export const FOREIGN_CLAIMS: ForeignClaims = {
  issuer: ISSUER,
  name: undefined,
  provesKeys: false,
  scope: 'scope',
  scopeMap: undefined,
  target: undefined,
  client: 'client_id',
  subject: 'sub',
}

export interface ForeignIssuer {
  /** Where its keys are. */
  readonly url: string
  /** What it publishes, or how it answers; may be changed at any time. */
  keys: readonly JWK[] | ((response: ServerResponse) => void)
  /** How often it was asked. */
  readonly asked: number
}

/** Serves a key set on loopback until the test ends. */
export async function startForeignIssuer(keys: ForeignIssuer['keys']): Promise<ForeignIssuer> {
  const issuer = { url: '', keys, asked: 0 }
  const server = createServer((_request, response) => {
    issuer.asked += 1
    if (typeof issuer.keys === 'function') issuer.keys(response)
    else response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ keys: issuer.keys }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`
  return issuer
}
