import type { IncomingMessage, ServerResponse } from 'node:http'
import { listen } from './own-server.ts'
import { nodeProgram, startProgram } from './programs.ts'
import { record, type ReceivedRequest } from './recorder.ts'
import { freePort } from '../free-port.ts'
import type { Service, Surroundings } from './service.ts'

/** A service that asks the issuer about each token (RFC 7662). */
const guarded =
  (issuer: string) =>
  async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? []
    const asked = await fetch(`${issuer}/token/introspection`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa('funds-service:secret-of-the-service')}` },
      body: new URLSearchParams({ token }),
    })
    const { active, scope } = (await asked.json()) as { active?: boolean; scope?: string }
    const allowed = active === true && scope === 'funds.read'
    response.writeHead(allowed ? 200 : 401, { 'Content-Type': 'application/json' })
    response.end(allowed ? '[{"code":"SUPER1"},{"code":"SUPER2"}]' : '{"error":"invalid_token"}')
  }

/** Port 9001 of the page is the issuer's, 9000 the service's. */
export async function startGuardedByTokens({ portFor, onRequest }: Surroundings): Promise<Service> {
  const requests: ReceivedRequest[] = []
  const note = (request: ReceivedRequest): void => {
    requests.push(request)
    onRequest?.(request)
  }
  const [issuerPort, servicePort] = [await freePort(), await freePort()]
  const started = [
    await startProgram(nodeProgram('issuer.ts', issuerPort), issuerPort),
    await listen(guarded(`http://127.0.0.1:${issuerPort}`), servicePort),
    await record(await portFor(9001), issuerPort, note),
    await record(await portFor(9000), servicePort, note),
  ]
  return {
    received: () => requests,
    stop: async () => {
      for (const each of started.toReversed()) await each.stop()
    },
  }
}
