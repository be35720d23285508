/** A client's address for logout notices (OpenID Connect Back-Channel Logout 1.0). */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { decodeJwt } from 'jose'
import { atEnd } from '../../support/shared.ts'

interface Notice {
  readonly method: string | undefined
  readonly type: string | undefined
  readonly token: string
  /** Of the token, which is not verified. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- whatever was sent; the tests check it
  readonly claims: any
}

export interface LogoutReceiver {
  readonly url: string
  readonly notices: readonly Notice[]
  /** Resolves when so many have come. */
  got(number: number): Promise<void>
  /** What is answered from now on: a status, `silence` for nothing at all. */
  answer: number | 'silence' | 'cut'
}

/** @param headers of each answer */
export async function startLogoutReceiver(
  answer: LogoutReceiver['answer'] = 200,
  headers: Readonly<Record<string, string>> = {},
): Promise<LogoutReceiver> {
  const notices: Notice[] = []
  const waiting = new Set<() => void>()
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const token = new URLSearchParams(await text(request)).get('logout_token') ?? ''
    const claims = token === '' ? {} : decodeJwt(token)
    notices.push({ method: request.method, type: request.headers['content-type'], token, claims })
    for (const look of waiting) look()
    if (receiver.answer === 'cut') request.socket.destroy()
    else if (receiver.answer !== 'silence') response.writeHead(receiver.answer, headers).end()
  }
  const server = createServer((request, response) => void receive(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(() => {
    server.close()
    server.closeAllConnections()
  })
  const receiver: LogoutReceiver = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/logout`,
    notices,
    answer,
    got: (number) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (notices.length < number) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      }),
  }
  return receiver
}
