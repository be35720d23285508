import { basic } from './tokens.ts'

/** An answer of an endpoint that speaks JSON. */
export interface OAuthAnswer {
  readonly status: number
  readonly headers: Headers
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever the endpoint says; the tests judge it
  readonly json: any
}

export interface OAuthRequest {
  readonly params: Readonly<Record<string, string>>
  /** `acme-books` unless told otherwise. */
  readonly client?: string
  readonly secret?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Posts a form to an identity endpoint as a client, over a real socket. */
export async function postForm(
  { authUrl }: { readonly authUrl: string },
  path: string,
  { params, client = 'acme-books', secret, headers }: OAuthRequest,
): Promise<OAuthAnswer> {
  const response = await fetch(`${authUrl}${path}`, {
    method: 'POST',
    headers: { Authorization: basic(client, secret), ...headers },
    body: new URLSearchParams(params),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    json: text === '' ? undefined : JSON.parse(text),
  }
}
