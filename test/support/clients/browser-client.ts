import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { SERVERS } from '../machine.ts'

/** The client of a browser alone: its page, and oidc-client-ts. */
export interface BrowserClient {
  readonly origin: string
  /** Before the page is opened: where it logs in, and what it calls then. */
  readonly aimAt: (issuer: string, funds: string) => void
  readonly close: () => Promise<void>
}

export async function startBrowserClient(): Promise<BrowserClient> {
  const script = readFileSync(join(SERVERS, 'oidc-client-ts/dist/browser/oidc-client-ts.js'))
  let page = readFileSync(new URL('oidc-client-ts.html', import.meta.url), 'utf8')
  const server = createServer(({ url }, response) => {
    const isScript = url?.endsWith('.js') === true
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html; charset=utf-8')
    response.end(isScript ? script : page)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    origin: `http://127.0.0.1:${port}`,
    aimAt: (issuer, funds) => {
      page = page.replace('https://login.example.com', issuer).replace('https://api.example.com/funds', funds)
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
