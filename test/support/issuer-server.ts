import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { atEnd } from './shared.ts'
import type { JWK } from 'jose'

export interface IssuerRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** An answer: its JSON, or what a test does to the response itself. */
export type IssuerAnswer = object | ((response: ServerResponse, request: IssuerRequest) => unknown)

export interface IssuerServer {
  /** Its origin, which is its `iss` too. */
  readonly url: string
  /** By path; may be changed at any time. Other paths are 404. */
  readonly answers: Map<string, IssuerAnswer>
  readonly requests: IssuerRequest[]
  /** The requests of one path. */
  readonly asked: (path: string) => readonly IssuerRequest[]
  readonly stop: () => void
}

export const OPENID = '/.well-known/openid-configuration'
export const RFC_8414 = '/.well-known/oauth-authorization-server'
export const JWKS = '/keys'
export const INTROSPECTION = '/introspect'

/** An issuer on loopback with metadata, keys and, if a test gives it an answer, introspection; until the test ends. */
export async function startIssuerServer(keys: readonly JWK[] = []): Promise<IssuerServer> {
  const answers = new Map<string, IssuerAnswer>()
  const requests: IssuerRequest[] = []
  const server = createServer((request, response) => void answer(request, response))
  async function answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = message
    const request = { method, path: url, headers, body: await text(message) }
    requests.push(request)
    const found = answers.get(url)
    if (typeof found === 'function') found(response, request)
    else if (found === undefined) response.writeHead(404).end()
    else response.setHeader('Content-Type', 'application/json').end(JSON.stringify(found))
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const stop = (): void => {
    server.close()
    server.closeAllConnections()
  }
  atEnd(stop)
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  answers.set(OPENID, {
    issuer: origin,
    jwks_uri: `${origin}${JWKS}`,
    introspection_endpoint: `${origin}${INTROSPECTION}`,
  })
  answers.set(JWKS, { keys })
  return {
    url: origin,
    answers,
    requests,
    asked: (path) => requests.filter((each) => each.path === path),
    stop,
  }
}
