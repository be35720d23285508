import { Buffer } from 'node:buffer'
import { hashOf, type Prover } from './prover.ts'
import type { Sent } from './requests.ts'
import type { StartedPostern } from './start-postern.ts'
import { ALL_AT_ACME, issueToken } from './tokens.ts'

type Members = Readonly<Record<string, unknown>>

const payloadOf = (token: string): Members =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Members

/** An access token of the service's own, with other claims: by its key, and as no process has seen it. */
export async function tokenWith(
  gateway: Pick<StartedPostern, 'authUrl' | 'world'>,
  claims: Members,
  scope = ALL_AT_ACME,
): Promise<string> {
  const { access_token } = await issueToken(gateway, { scope })
  const { keys } = gateway.world
  if (keys === undefined) throw new Error('a sidecar signs no tokens')
  const { token } = await keys.sign(
    { ...payloadOf(access_token), ...claims },
    { typ: 'at+jwt', algorithm: 'ES256' },
  )
  return token
}

/** An access token that is bound to a key. */
export const boundToken = (
  gateway: Pick<StartedPostern, 'authUrl' | 'world'>,
  { jkt }: Pick<Prover, 'jkt'>,
  scope?: string,
): Promise<string> => tokenWith(gateway, { cnf: { jkt } }, scope)

/** The two headers of a call with a bound token. @param claims of the proof, in place of the right ones */
export function provenHeaders(
  by: Pick<Prover, 'prove'>,
  token: string,
  { baseUrl, target, method = 'GET' }: Pick<Sent, 'target' | 'method'> & { readonly baseUrl: string },
  claims: Members = {},
): { readonly Authorization: string; readonly DPoP: string } {
  const htu = baseUrl + target.replace(/\?.*/, '')
  return {
    Authorization: `DPoP ${token}`,
    DPoP: by.prove({ htm: method, htu, ath: hashOf(token), ...claims }),
  }
}
