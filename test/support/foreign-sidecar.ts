import { type CryptoKey, SignJWT } from 'jose'
import type { IssuerConfig } from '../../src/identity/keys/issuers/issuers-schema.ts'
import { makeIssuerKey } from './foreign-issuer.ts'
import { startIssuerServer } from './issuer-server.ts'
import { postern, type StartedPostern, type StartOptions } from './start-postern.ts'
import { answerJson, startUpstream, type Upstream } from './start-upstream.ts'

// C11.2: a sidecar for issuers that others run.

export const AUDIENCE = 'https://api.example'
export const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
export const [keyOfOne, keyOfTwo] = [await makeIssuerKey('same'), await makeIssuerKey('same')]

/** An access token; RFC 9068 unless told otherwise. */
export const sign = (
  { kid, privateKey }: { kid: string; privateKey: CryptoKey },
  issuer: string,
  claims: object = {},
  typ = 'at+jwt',
): Promise<string> =>
  new SignJWT({
    ...{ client_id: 'app', scope: 'fund.read target:b/ACME', jti: 'same-id', sub: 'someone' },
    ...{ iss: issuer, aud: AUDIENCE, iat: seconds() - 10, exp: seconds() + 600 },
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ, kid })
    .sign(privateKey)

export const seconds = (): number => Math.floor(Date.now() / 1000)

const DEFAULTS: Omit<IssuerConfig, 'issuer'> = {
  ...{ audience: AUDIENCE, typ: ['at+jwt'], algorithms: ['ES256'], scopeClaim: 'scope' },
  ...{ clientClaim: 'client_id', subjectClaim: 'sub', confirmation: 'refuse' as const, leeway: 0 },
  longestLife: 86_400_000,
}

/** Members of an issuer's configuration; of extensions too. */
export type IssuerChanges = Partial<Omit<IssuerConfig, 'confirmation'>> &
  Readonly<Record<string, unknown>> & { readonly issuer: string }

export interface Scene {
  readonly sidecar: StartedPostern
  readonly upstream: Upstream
  readonly call: (token: string, headers?: Record<string, string>) => Promise<number>
  /** The values of a header of the last call that the upstream got. */
  readonly told: (name: string) => readonly string[] | undefined
}

export async function scene(issuers: readonly IssuerChanges[], options: StartOptions = {}): Promise<Scene> {
  const upstream = await startUpstream(answerJson({ FundSummaries: [], TotalCount: 0 }))
  const sidecar = await postern({
    keeps: 'nothing',
    config: 'sidecar.yaml',
    ...options,
    environment: { UPSTREAM_URL: upstream.url, ...options.environment },
    change: (loaded) => {
      const changed = {
        ...loaded,
        issuers: issuers.map((issuer): IssuerConfig => ({ ...DEFAULTS, ...issuer })),
      }
      return options.change?.(changed) ?? changed
    },
  })
  return {
    sidecar,
    upstream,
    call: async (token, headers = {}) =>
      (
        await fetch(`${sidecar.baseUrl}${LIST}`, {
          headers: { Authorization: `Bearer ${token}`, ...headers },
        })
      ).status,
    told: (name) => upstream.requests.at(-1)?.headers[name],
  }
}

/** One whose bound tokens are proven (C4.4a). To be `shared` in the test's own file: this one outlives it. */
export const openProvenScene = async (more: Omit<IssuerChanges, 'issuer'> = {}) => {
  const server = await startIssuerServer([keyOfOne.jwk])
  const withAddress: NonNullable<StartOptions['change']> = (loaded) => ({
    ...loaded,
    server: { ...loaded.server, baseUrl: AUDIENCE },
  })
  const made = await scene([{ issuer: server.url, confirmation: 'dpop', ...more }], { change: withAddress })
  const send = (headers: Record<string, string>) =>
    fetch(`http://127.0.0.1:${made.sidecar.port}${LIST}`, { headers })
  return { ...made, server, send }
}
