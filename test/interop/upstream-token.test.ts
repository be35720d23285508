import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fundsOf } from '../support/changed-funds.ts'
import { needing, python } from '../support/machine.ts'
import { bearer, send } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** C8.2: the checks that src/gateway/backends/README.md gives to upstreams, run as they stand there. */

const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
const README = readFileSync(new URL('../../src/gateway/backends/README.md', import.meta.url), 'utf8')

const blockOf = (language: string): string =>
  new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(README)?.[1] ??
  expect.fail(`no ${language} in the document`)

let upstream: Upstream
let gateway: StartedPostern
let access: string
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-token-'))
  upstream = await openUpstream()
  gateway = await startPostern({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change: (loaded) => {
      const funds = fundsOf(loaded)
      const backends = { ...loaded.backends, funds: { ...funds, identity: 'token' as const } }
      return { ...loaded, backends }
    },
  })
  access = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await gateway.close()
  await upstream.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What the upstream gets for a call, told by its headers. */
async function call(
  headers: Record<string, string> = {},
): Promise<Readonly<Record<string, readonly string[]>>> {
  upstream.requests.splice(0)
  expect((await send(gateway, { target: DETAIL, headers: { ...bearer(access), ...headers } })).status).toBe(
    200,
  )
  return upstream.requests[0]!.headers
}

const tokenOf = async (): Promise<string> => (await call())['x-postern-token']?.[0] ?? expect.fail('no token')

const CLAIMS = {
  aud: 'funds',
  sub: '45733adb-9b07-4d40-ae57-20cf9b802f51',
  client_id: 'acme-books',
  scope: ALL_AT_ACME,
  business: 'ACME',
  fund: 'SUPER1',
}

type Outcome = { readonly claims: unknown } | 'refused'

/** Runs a program that reads a token and prints its claims. */
const run = (program: string, args: readonly string[], token: string): Promise<Outcome> =>
  new Promise((resolve) => {
    const child = spawn(program, args, { env: { ...process.env, POSTERN_ISSUER: gateway.authUrl } })
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    child.on('close', (code) => resolve(code === 0 ? { claims: JSON.parse(printed) } : 'refused'))
    child.stdin.end(token)
  })

/** The same claims under another's signature, for another, and an access token. */
async function forgeries(): Promise<string[]> {
  const token = await tokenOf()
  const [head = '', body = '', signature = ''] = token.split('.')
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const other = Buffer.from(JSON.stringify({ ...claims, business: 'GLOBEX' })).toString('base64url')
  const unsigned = Buffer.from('{"alg":"none","typ":"postern-call+jwt"}').toString('base64url')
  return [access, `${head}.${other}.${signature}`, `${unsigned}.${body}.`, '']
}

describe('C8.2 the token that tells an upstream who calls', () => {
  it('C8.2 comes instead of the headers, and nothing of the client’s in its place', async () => {
    const headers = await call({
      'X-Postern-Token': 'forged',
      X_Postern_Token: 'forged',
      'X-Postern-Subject': 'root',
    })
    expect(headers['x-postern-token']).toEqual([expect.stringMatching(/^ey[\w-]+\.[\w-]+\.[\w-]+$/)])
    const others = Object.keys(headers)
      .filter((name) => /postern/.test(name))
      .sort()
    expect(others).toEqual(['x-postern-action-version', 'x-postern-token'])
  })

  it('C8.2 is the same for calls in a row, and no access token', async () => {
    const token = await tokenOf()
    expect(await tokenOf()).toBe(token)
    expect((await send(gateway, { target: DETAIL, headers: bearer(token) })).status).toBe(401)
  })

  it('C8.2 passes the documented check in Node, and nothing else does', async () => {
    const file = join(folder, 'check.mjs')
    const jose = pathToFileURL(fileURLToPath(import.meta.resolve('jose'))).href
    writeFileSync(
      file,
      `${blockOf('js').replace("'jose'", `'${jose}'`)}
      const token = await new Response((await import('node:stream')).Readable.toWeb(process.stdin)).text()
      console.log(JSON.stringify(await whoCalls({ 'x-postern-token': token })))`,
    )
    const check = (token: string) => run(process.execPath, [file], token)
    expect(await check(await tokenOf())).toEqual({
      claims: { iss: gateway.authUrl, ...CLAIMS, iat: expect.any(Number), exp: expect.any(Number) },
    })
    expect(await Promise.all((await forgeries()).map(check))).toEqual(Array(4).fill('refused'))
  })

  it(
    'C8.2 passes the documented check in Python, and nothing else does',
    needing('python3-cryptography'),
    async () => {
      const file = join(folder, 'check.py')
      writeFileSync(
        file,
        `${blockOf('python')}\nimport sys\nprint(json.dumps(who_calls(sys.stdin.read())))\n`,
      )
      const check = (token: string) => run(python() ?? 'python3', [file], token)
      expect(await check(await tokenOf())).toMatchObject({ claims: { iss: gateway.authUrl, ...CLAIMS } })
      expect(await Promise.all((await forgeries()).map(check))).toEqual(Array(4).fill('refused'))
    },
  )
})
