/** The services whose token endpoints are measured. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { walkToCode } from '../../support/code-walk.ts'
import { cpuSeconds, processTree } from './cpu-time.ts'
import { CHALLENGE, CLIENT, inParallel, REDIRECT } from './exchanges.ts'
import { startPosternProcess, type PosternSubject } from './postern-process.ts'

/** Codes asked for at a time: no part of what is measured, and so no flood. */
const MINTING = 8

/** A service that issues tokens, and the codes that it has given to a person's browser. */
export interface Issuer {
  readonly name: string
  readonly endpoint: string
  /** CPU seconds used so far. */
  cpu(): number
  mint(count: number, scope: string): Promise<readonly string[]>
  stop(): void | Promise<void>
}

export async function startOidcProvider(): Promise<Issuer> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'oidc-provider.ts')], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const origin = `http://127.0.0.1:${line.toString().trim()}`
  return {
    name: 'oidc-provider, in-memory adapter',
    endpoint: `${origin}/token`,
    cpu: () => cpuSeconds(processTree(child.pid ?? 0)),
    mint: async (count, scope) => {
      const query = new URLSearchParams({ count: String(count), challenge: CHALLENGE, scope })
      return (await (await fetch(`${origin}/mint?${query.toString()}`)).json()) as string[]
    },
    stop: () => void child.kill('SIGTERM'),
  }
}

const requestOf = (scope: string): Record<string, string> => ({
  response_type: 'code',
  client_id: CLIENT,
  redirect_uri: REDIRECT,
  scope: `${scope} target:b/ACME`,
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
})

/**
 * As it is run, with the store that `yaml` says. People's consent is remembered, so that codes need no page. Its data are
 * those of the demo, unless an upstream has others.
 */
export async function startPosternIssuer(
  name: string,
  yaml: string,
  upstream?: string,
): Promise<Issuer & PosternSubject> {
  const file = upstream === undefined ? 'demo.yaml' : 'upstream.yaml'
  const postern = await startPosternProcess(upstream ?? '', yaml, { file })
  const authUrl = postern.origin
  const cookies = new Map<string, Promise<string>>()
  const login = async (scope: string): Promise<string> =>
    (await walkToCode({ authUrl, params: requestOf(scope), username: 'alice', business: 'ACME' })).cookie
  const authorize = async (scope: string, cookie: string): Promise<string> => {
    const query = new URLSearchParams(requestOf(scope))
    const response = await fetch(`${authUrl}/connect/authorize?${query.toString()}`, {
      redirect: 'manual',
      headers: { cookie },
    })
    await response.arrayBuffer()
    const location = response.headers.get('location') ?? ''
    const code = URL.parse(location)?.searchParams.get('code')
    if (code === undefined || code === null) throw new Error(`no code: ${response.status} ${location}`)
    return code
  }
  return {
    ...postern,
    name,
    endpoint: `${authUrl}/connect/token`,
    mint: async (count, scope) => {
      const session = cookies.get(scope) ?? login(scope)
      cookies.set(scope, session)
      const cookie = await session
      const codes: string[] = []
      await inParallel(Array.from({ length: count }), MINTING, async () => {
        codes.push(await authorize(scope, cookie))
      })
      return codes
    },
  }
}
