import type { StartedPostern } from './start-postern.ts'

export interface TokenRequest {
  readonly client?: string
  readonly secret?: string
  readonly username?: string
  readonly password?: string
  readonly scope: string
}

export interface TokenResponse {
  readonly access_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly scope: string
  readonly refresh_token?: string
  readonly id_token?: string
}

/** The Basic header of a client; the demo's secrets are their ids with `-secret`. */
export const basic = (client: string, secret = `${client}-secret`): string =>
  `Basic ${Buffer.from(`${client}:${secret}`).toString('base64')}`

/** A token by password grant; alice at acme-books unless told otherwise. Throws on anything but 200. */
export async function issueToken(
  { authUrl }: Pick<StartedPostern, 'authUrl'>,
  {
    client = 'acme-books',
    secret,
    username = 'alice',
    password = `${username}-password`,
    scope,
  }: TokenRequest,
): Promise<TokenResponse> {
  const response = await fetch(`${authUrl}/connect/token`, {
    method: 'POST',
    headers: { Authorization: basic(client, secret) },
    body: new URLSearchParams({ grant_type: 'password', username, password, scope }),
  })
  const body = await response.text()
  if (response.status !== 200) throw new Error(`${response.status} ${body}`)
  return JSON.parse(body) as TokenResponse
}

/** What alice may do at ACME: everything of the demo. */
export const ALL_AT_ACME =
  'openid profile fund.maintain business.fund.list business.fund.create api1 target:b/ACME'

/** The member of ACME/SUPER1 that the demo names (C10). */
export const MEMBER = '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f'
