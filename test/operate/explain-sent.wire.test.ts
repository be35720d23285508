/** What a service would be sent for a call that nobody makes (C14.1). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import type { ExplainedSent, Explanation } from '../../src/base/contracts/calls/explanation.ts'
import { recordsOf } from '../support/audit-files.ts'
import { runVerb } from '../support/command-line.ts'
import { bearer, send, type Sent } from '../support/requests.ts'
import { ROOT, WITHOUT_WAITS } from '../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { openUpstream, type ReceivedRequest, type Upstream } from '../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

/** All are known nowhere but in the environment, in files and in the store. */
const SECRETS = {
  KEY: 'sesame-of-the-environment',
  BRACED: 'a{business}b}}c',
  PASSWORD: 'sesame-of-auth',
  VALUE: 'sesame-of-acme',
}
const FILE_SECRET = 'sesame-of-a-file'

const READ = 'scopes: { any: [fund.read] }'
const BODY = 'body: { required: true }'

const ACTIONS: Readonly<Record<string, string>> = {
  plain: `{ GET: { ${READ} }, POST: { ${READ}, ${BODY} } }`,
  shaped: `{ POST: { ${READ}, ${BODY}, upstream: { path: '/v2/{business.tenant}/x', query: { of: '{business}' }, queryOnly: [page], headers: { X-Tenant: 't-{business.tenant}' }, method: PUT, body: { template: { who: '{subject}', note: '{body/Note}', id: '{requestId}' } } } } }`,
  secret: `{ POST: { ${READ}, ${BODY}, upstream: { path: '/k/{business.key}/x{business.key}', query: { key: { env: KEY }, mixed: 'a {business.key} b', file: { file: secret.txt } }, headers: { X-Key: { env: BRACED }, X-Mixed: 'Key {business.key}' }, auth: { basic: { user: '{business.tenant}', password: { env: PASSWORD } } }, body: { template: { key: '{business.key}', text: 'k={business.key};', env: { env: KEY }, file: { file: secret.txt }, list: ['{business.key}'], tenant: '{business.tenant}' } } } } }`,
  setting: `{ POST: { ${READ}, ${BODY}, upstream: { body: { set: { /key: '{business.key}', /env: { env: KEY } } } } } }`,
  requiring: `{ POST: { ${READ}, ${BODY}, upstream: { body: { require: { /company: '{business.tenant}' } } } } }`,
  enveloped: `{ POST: { ${READ}, body: { required: true, schema: { type: object, properties: { Note: { type: string }, company: { type: string } } } }, upstream: { format: xml, xml: { dialect: plain }, body: { template: { Envelope: { Note: '{body/Note}' } } } } } }`,
  odd: `{ GET: { ${READ}, upstream: { query: { q: 'No eq {business.odd}' } } } }`,
  token: `{ GET: { ${READ}, upstream: { auth: { oauth2: { tokenUrl: 'http://127.0.0.1:1/token', clientId: a, clientSecret: { env: PASSWORD } } } } } }`,
  ...Object.fromEntries(
    ['varied', 'hidden', 'named', 'several'].map((backend) => [
      backend,
      `{ GET: { ${READ}, upstream: { backend: ${backend}, path: /x } } }`,
    ]),
  ),
  passed: `{ GET: { ${READ}, upstream: { forwardAuthorization: true } } }`,
}

/** Of the other businesses. */
const OTHERS = `tenant: t-8, odd: c, key: g, url: 'http://127.0.0.1:1', secretUrl: 'http://127.0.0.1:1'`

const OPERATOR = 'a'.repeat(43)

let folder: string
let gateway: StartedPostern
let upstream: Upstream
let token: string

beforeAll(async () => {
  upstream = await openUpstream()
  folder = mkdtempSync(join(tmpdir(), 'postern-sent-'))
  const actions = Object.entries(ACTIONS).map(
    ([action, methods]) => `  - { level: business, area: fund-data, action: ${action}, methods: ${methods} }`,
  )
  const file = join(folder, 'postern.yaml')
  writeFileSync(join(folder, 'secret.txt'), FILE_SECRET)
  writeFileSync(
    file,
    [
      `extends: ${ROOT}config/upstream.yaml`,
      WITHOUT_WAITS,
      `directory: { businesses: { ACME: { values: { tenant: t-7, odd: "a b", key: { env: VALUE }, url: '${upstream.url}/base', secretUrl: { env: URL } } }, GLOBEX: { values: { ${OTHERS} } }, INITECH: { values: { ${OTHERS} } } } }`,
      'backends:',
      `  varied: { kind: http, target: '{business.url}', origins: ['http://127.0.0.1:*'], host: '{business.tenant}.internal' }`,
      `  hidden: { kind: http, target: '{business.secretUrl}', origins: ['http://127.0.0.1:*'] }`,
      `  named: { kind: http, target: '${upstream.url}', host: '{business.key}.internal' }`,
      `  several: { kind: http, targets: ['${upstream.url}', 'http://127.0.0.1:1/x'] }`,
      `admin: { tokens: [{ name: ann, role: operate, hash: '${hashSecret(OPERATOR)}' }] }`,
      'actions:',
      ...actions,
    ].join('\n'),
  )
  gateway = await startPostern({
    file,
    environment: { UPSTREAM_URL: upstream.url, URL: `${upstream.url}/hidden`, ...SECRETS },
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(async () => {
  await gateway.close()
  await upstream.close()
  rmSync(folder, { recursive: true })
})

const callOf = (action: string, more: Partial<Sent> = {}): Sent => ({
  target: `/api/1.0/b/ACME/fund-data/${action}`,
  ...more,
  headers: {
    ...bearer(token),
    ...(more.body === undefined ? {} : { 'Content-Type': 'application/json' }),
    ...more.headers,
  },
})

const POST = { method: 'POST', body: '{"Note":"a \\"note\\"","company":"t-7"}' } as const
/** Without the name that another operation binds (C8.7). */
const FREE = { ...POST, body: POST.body.replace('company', 'city') }

const post = (body: object, more: Readonly<Record<string, string>> = {}): Promise<Response> =>
  fetch(`${gateway.adminUrl}/explain`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...more },
    body: JSON.stringify(body),
  })

/** What the admin API says, as text. */
async function ask({ method = 'GET', target, headers = {}, body }: Sent, sent = true): Promise<string> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`)
  const answer = await post({ method, path: target, headers: lines, body, sent }, admin())
  expect(answer.status).toBe(200)
  return answer.text()
}

const admin = (): Record<string, string> => ({
  Authorization: `Bearer ${readFileSync(join(gateway.data, 'admin-token'), 'utf8').trim()}`,
})

const sentOf = async (call: Sent): Promise<ExplainedSent & Record<string, unknown>> =>
  (JSON.parse(await ask(call)) as Explanation).sent as never

/** Without what differs from call to call. */
const lines = (headers: readonly string[]): readonly string[] =>
  headers.filter((line) => !/^(traceparent|x-request-id): /i.test(line))

const linesOf = ({ head }: ReceivedRequest): readonly string[] => lines(head.split('\r\n').slice(1))

describe('C14.1 explain with `sent`', () => {
  it.each([
    ['plain', {}],
    ['plain?page=2&x=%41', { headers: { Accept: 'application/xml', 'X-Own': 'a' } }],
    ['plain', FREE],
    ['shaped?page=1&size=2', POST],
    ['enveloped', POST],
    ['varied', {}],
  ])('C14.1 shows the request that the service then gets: %s %j', async (action, more) => {
    const call = callOf(action, more)
    const before = upstream.requests.length
    const shown = await sentOf(call)
    expect(upstream.requests).toHaveLength(before)
    await send(gateway, call)
    const got = upstream.requests.at(-1)!
    expect(upstream.requests).toHaveLength(before + 1)
    const id = /"id":"([^"]*)"/
    expect(shown).toMatchObject({
      method: got.method,
      url: `${upstream.url}${got.target}`,
      others: [],
      headers: expect.any(Array),
    })
    expect(lines(shown['headers'] as string[])).toEqual(linesOf(got))
    expect(((shown['body'] ?? '') as string).replace(id, '')).toBe(got.body.toString().replace(id, ''))
  })

  it('C14.1 has *** for what came from the environment, from files and for secret values', async () => {
    const text = await ask(callOf('secret', POST))
    for (const secret of [...Object.values(SECRETS), FILE_SECRET]) {
      expect(text).not.toContain(secret)
      expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(0, 8))
    }
    const { sent } = JSON.parse(text) as { sent: Record<string, unknown> }
    expect(sent).toMatchObject({
      url: `${upstream.url}/k/***/x***?key=***&mixed=a%20***%20b&file=***`,
      headers: expect.arrayContaining(['x-key: ***', 'x-mixed: Key ***', 'authorization: ***']),
    })
    expect(JSON.parse(String(sent['body']))).toEqual({
      ...{ key: '***', text: 'k=***;', env: '***', file: '***', list: ['***'], tenant: 't-7' },
    })
  })

  it('C14.1 the service itself gets the values', async () => {
    await send(gateway, callOf('secret', POST))
    const { head, body } = upstream.requests.at(-1)!
    expect(head).toContain(`key=${SECRETS.KEY}&mixed=a%20${SECRETS.VALUE}%20b&file=${FILE_SECRET}`)
    expect(head).toContain(`x-key: ${SECRETS.BRACED}`)
    expect(JSON.parse(body.toString())).toMatchObject({ env: SECRETS.KEY, text: `k=${SECRETS.VALUE};` })
  })

  it('C14.1 tells where a call goes, unless a secret says it', async () => {
    const { port } = new URL(upstream.url)
    const hidden = await ask(callOf('hidden'))
    expect(hidden).not.toContain(port)
    expect(hidden).toContain('"url":"***/x"')
    expect(hidden).toContain('"host: ***"')
    expect(await sentOf(callOf('named'))).toMatchObject({
      url: `${upstream.url}/x`,
      headers: expect.arrayContaining(['host: ***.internal']),
    })
    expect(await sentOf(callOf('several'))).toMatchObject({
      url: `${upstream.url}/x`,
      others: ['http://127.0.0.1:1/x/x'],
    })
  })

  it('C14.1 has *** for members that are set, beside those of the client', async () => {
    const { body } = await sentOf(callOf('setting', FREE))
    expect(JSON.parse(String(body))).toEqual({
      ...{ Note: 'a "note"', city: 't-7', key: '***', env: '***' },
    })
  })

  it('C14.1 tells what a client would be answered where nothing is sent', async () => {
    expect(await sentOf(callOf('requiring', { ...POST, body: '{"company":"t-8"}' }))).toEqual({
      refusal: expect.objectContaining({ status: 400 }),
    })
    expect(await sentOf(callOf('odd'))).toEqual({
      refusal: expect.objectContaining({ status: 500, reason: 'unsendable_value' }),
    })
    expect(upstream.requests.filter(({ target }) => target.includes('odd'))).toEqual([])
  })

  it('C14.1 asks of a body that another one is made of whether it is well formed and fits its schema', async () => {
    const more = (body: string): Sent => callOf('enveloped', { ...POST, body })
    expect(JSON.parse(await ask(more(POST.body), false))).toMatchObject({ outcome: 'let in' })
    expect(JSON.parse(await ask(more('{"Note":1}'), false))).toMatchObject({
      refusal: { reason: 'body_invalid' },
    })
    expect(JSON.parse(await ask(more('{'), false))).toMatchObject({ refusal: { reason: 'body_malformed' } })
  })

  it('C14.1 fetches no token, and repeats none of the client', async () => {
    expect(await sentOf(callOf('token'))).toMatchObject({
      headers: expect.arrayContaining(['authorization: ***']),
    })
    const passed = await ask(callOf('passed'))
    for (const part of token.split('.')) expect(passed).not.toContain(part)
    expect(passed).toContain('authorization: ***')
  })

  it('C14.1 shows it to who has the right `administer`, and only where it is asked for', async () => {
    expect(await ask(callOf('shaped', POST), false)).not.toContain('"sent"')
    const call = { method: 'GET', path: '/api/1.0/b/ACME/fund-data/plain' }
    const ann = { Authorization: `Bearer ${OPERATOR}` }
    expect((await post(call, ann)).status).toBe(200)
    const refused = await post({ ...call, sent: true }, ann)
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('`administer`')])
    await expect.poll(() => recordsOf(gateway, 'operator.refused').length).toBe(1)
    expect(await ask({ target: '/api/1.0/b/ACME/fund-data/plain' })).not.toContain('"sent"')
  })

  it('C14.1 leaves the record of the question, and none of a change', async () => {
    const before = recordsOf(gateway, 'explain.asked').length
    const changes = (): number => recordsOf(gateway, 'api.call').length
    const changed = changes()
    await ask(callOf('shaped', POST))
    await expect.poll(() => recordsOf(gateway, 'explain.asked').length).toBe(before + 1)
    expect(changes()).toBe(changed)
  })

  it('C14.1 the command prints it as a request is written', async () => {
    const options = ['--client', 'acme-books', '--user', 'alice', '--target', 'b/ACME', '-d', POST.body]
    const { code, stdout } = await runVerb(
      ['explain', '--sent', ...options, 'POST', '/api/1.0/b/ACME/fund-data/secret'],
      {
        env: {
          ...SECRETS,
          POSTERN_CONFIG: join(folder, 'postern.yaml'),
          UPSTREAM_URL: upstream.url,
          POSTERN_ADMIN_PORT: String(gateway.adminPort),
          POSTERN_DATA: gateway.data,
        },
      },
    )
    expect(code).toBe(0)
    expect(stdout).toContain(
      `\nthe service would be sent:\n  POST ${upstream.url}/k/***/x***?key=***&mixed=a%20***%20b&file=***\n  host: `,
    )
    expect(stdout).toMatch(/\n {2}\{"key":"\*\*\*".*\}\n$/)
  })
})
