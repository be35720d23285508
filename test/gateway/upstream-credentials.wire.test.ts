import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { AuthConfig } from '../../src/gateway/backends/forward/schema/schema.ts'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { withFunds } from '../support/changed-funds.ts'
import { configFiles } from '../support/config-files.ts'
import { type OperationUpstream, withForwardedActions } from '../support/forwarded-action.ts'
import { replacedService } from '../support/replaced-service.ts'
import { bearer, send } from '../support/requests.ts'
import type { StartedPostern } from '../support/start-postern.ts'
import { answerJson, startUpstream, type Upstream } from '../support/start-upstream.ts'
import { at, withStream } from '../support/streaming.ts'
import { grantEach, oauth2 } from '../support/token-endpoint.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'
import { askWebsocket, startWebsocketUpstream } from '../support/websocket-upstream.ts'
import { SETTINGS } from '../support/settings.ts'

const AREA = '/api/1.0/b/ACME/fund-data'
const LIST = `${AREA}/fund-list`

interface World {
  readonly upstream: Upstream
  readonly gateway: StartedPostern
  readonly call: (headers?: Record<string, string>, target?: string) => ReturnType<typeof send>
}

const replaced = replacedService({ keeps: 'nothing' })

async function world(change: (loaded: Configuration) => Configuration): Promise<World> {
  const upstream = await startUpstream()
  const gateway = await replaced({
    config: 'upstream.yaml',
    environment: { UPSTREAM_URL: upstream.url },
    change,
  })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  return {
    upstream,
    gateway,
    call: (headers = {}, target = LIST) =>
      send(gateway, { target, headers: { ...bearer(access_token), ...headers } }),
  }
}

const KINDS: readonly (readonly [string, AuthConfig, string, string])[] = [
  [
    'basic',
    { basic: { user: 'pöstern', password: 'pass:wörd' } },
    'authorization',
    `Basic ${Buffer.from('pöstern:pass:wörd').toString('base64')}`,
  ],
  ['bearer', { bearer: 'an.upstream-token' }, 'authorization', 'Bearer an.upstream-token'],
  ['header', { header: { name: 'X-Api-Key', value: 'the key, 1' } }, 'x-api-key', 'the key, 1'],
  ['header', { header: { name: 'Authorization', value: 'Key abc' } }, 'authorization', 'Key abc'],
]

describe('C8.7 auth', () => {
  it.each(KINDS)(
    'C8.7 %s sends what it says, and nothing of the kind that a client sends',
    async (_kind, auth, name, value) => {
      const { upstream, call } = await world(withFunds({ auth }))
      const smuggled = { 'X-Api-Key': 'mine', 'x.api.key': 'mine', X_API_KEY: 'mine', 'X-Other': 'passes' }
      expect((await call(smuggled)).status).toBe(200)
      const { headers, head } = upstream.requests[0]!
      expect(headers[name]).toEqual([value])
      expect(headers['x-other']).toEqual(['passes'])
      expect(headers['authorization'] ?? []).toHaveLength(name === 'authorization' ? 1 : 0)
      if (name === 'x-api-key') expect(head).not.toContain('mine')
    },
  )

  it('C8.7 that the upstream refuses is trouble of ours, and is not told', async () => {
    const { upstream, gateway, call } = await world(withFunds({ auth: { bearer: 'secret-token' } }))
    upstream.behave((connection) =>
      connection.respond({ status: 401, headers: { 'WWW-Authenticate': 'Bearer realm="secret-token"' } }),
    )
    const answer = await call()
    expect(answer.status).toBe(500)
    expect(upstream.requests).toHaveLength(1)
    expect(JSON.stringify([answer.headers, answer.body, gateway.logLines()])).not.toContain('secret-token')
  })

  const upstreams: Readonly<Record<string, OperationUpstream>> = {
    inherits: { path: '/inherits' },
    own: { auth: { header: { name: 'X-Api-Key', value: 'own' } } },
    clients: { forwardAuthorization: true },
  }
  it('C8.7 of an operation takes the place of its backend’s; so does the client’s Authorization', async () => {
    const { upstream, call } = await world(
      withForwardedActions(upstreams, (funds) => ({ ...funds, auth: { bearer: 'backend' } })),
    )
    const got: Record<string, unknown> = {}
    for (const action of ['inherits', 'own', 'clients']) {
      await call({}, `${AREA}/${action}`)
      const { authorization, 'x-api-key': key } = upstream.requests.at(-1)!.headers
      got[action] = { authorization: authorization?.map((each) => each.split('.')[0]), key }
    }
    expect(got).toEqual({
      inherits: { authorization: ['Bearer backend'], key: undefined },
      own: { authorization: undefined, key: ['own'] },
      clients: { authorization: [expect.stringMatching(/^Bearer eyJ/)], key: undefined },
    })
  })

  it('C8.7 is sent again within the origin of a redirect, and not to another one', async () => {
    const other = await startUpstream()
    const { upstream, call } = await world(
      withFunds({
        auth: { header: { name: 'X-Api-Key', value: 'the-key' } },
        redirects: { max: 2, within: ['/within'], origins: [other.url] },
      }),
    )
    upstream.behave((connection) => {
      const { target } = connection.request
      const Location = target === LIST ? '/within' : `${other.url}/elsewhere`
      connection.respond({ status: 302, headers: { Location } })
    })
    expect((await call()).status).toBe(200)
    expect(upstream.requests.map(({ headers }) => headers['x-api-key'])).toEqual([['the-key'], ['the-key']])
    expect(other.requests).toHaveLength(1)
    expect(other.requests[0]!.head).not.toContain('the-key')
  })

  it('C8.7 goes with the handshake of a websocket; a token that is refused is fetched for the next one', async () => {
    const upstream = await startWebsocketUpstream()
    const refusing = await startUpstream((connection) => connection.respond({ status: 401 }))
    const endpoint = await startUpstream(grantEach())
    const start = (url: string): Promise<StartedPostern> =>
      replaced({
        config: 'upstream.yaml',
        environment: { UPSTREAM_URL: url },
        change: (loaded) => withStream(withFunds({ auth: oauth2(endpoint.url) })(loaded)),
      })
    const ask = async (gateway: StartedPostern) => {
      const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
      const url = gateway.baseUrl.replace('http', 'ws') + at('live/lobby')
      return askWebsocket(url, { headers: bearer(access_token) })
    }
    expect((await ask(await start(upstream.url))).kind).toBe('open')
    expect(upstream.handshakes[0]!.headers.authorization).toBe('Bearer token-1')
    const gateway = await start(refusing.url)
    expect(await ask(gateway)).toMatchObject({ kind: 'refused', status: 500 })
    expect(await ask(gateway)).toMatchObject({ kind: 'refused', status: 500 })
    expect(refusing.requests.map(({ headers }) => headers['authorization'])).toEqual([
      ['Bearer token-2'],
      ['Bearer token-3'],
    ])
  })
})

describe('C8.7 a reload', () => {
  const replace = async ({ worker }: StartedPostern, configuration: Configuration): Promise<void> => {
    await worker?.prepare(configuration)
    await worker?.commit()
  }

  it('C8.7 that leaves a backend as it is leaves its token, which operations with the same oauth2 share', async () => {
    const endpoint = await startUpstream(grantEach())
    const auth = oauth2(endpoint.url)
    const { upstream, gateway, call } = await world(
      withForwardedActions({ inherits: { path: '/inherits' }, same: { auth: { ...auth } } }, (funds) => ({
        ...funds,
        auth,
      })),
    )
    for (const action of ['fund-list', 'inherits', 'same']) await call({}, `${AREA}/${action}`)
    await replace(gateway, { ...gateway.configuration })
    for (const action of ['fund-list', 'inherits', 'same']) await call({}, `${AREA}/${action}`)
    expect(new Set(upstream.requests.map(({ headers }) => headers['authorization']?.join()))).toEqual(
      new Set(['Bearer token-1']),
    )
    expect(endpoint.requests).toHaveLength(1)
  })

  it('C8.7 finds that the file behind a secret has changed', async () => {
    const file = configFiles({
      'postern.yaml': [
        `extends: ${fileURLToPath(new URL('../../config/upstream.yaml', import.meta.url))}`,
        'backends: { funds: { auth: { header: { name: X-Api-Key, value: { file: key } } } } }',
      ].join('\n'),
      key: 'first\n',
    })
    const upstream = await startUpstream()
    const environment = { POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0', UPSTREAM_URL: upstream.url }
    const read = (): Configuration => {
      const { configuration, problems } = SETTINGS.read(file('postern.yaml'), environment)
      return configuration ?? expect.fail(JSON.stringify(problems.list))
    }
    const { gateway, call } = await world((loaded) => ({ ...loaded, backends: read().backends }))
    await call()
    expect(readFileSync(file('key'), 'utf8')).toBe('first\n')
    writeFileSync(file('key'), 'second\n')
    await replace(gateway, { ...gateway.configuration, backends: read().backends })
    await call()
    expect(upstream.requests.map(({ headers }) => headers['x-api-key'])).toEqual([['first'], ['second']])
  })
})

/** What is wrong with a configuration that has this `auth`, and `more` beside `backends`, in YAML. */
async function problemsOf(auth: string, others = '', more = ''): Promise<string[]> {
  const file = configFiles({
    'postern.yaml': [
      `extends: ${fileURLToPath(new URL('../../config/upstream.yaml', import.meta.url))}`,
      `backends: { funds: { auth: ${auth}${others} } }`,
      more,
    ].join('\n'),
    'line-end': 'a\nb',
    'not-ascii': 'é',
    spaced: ' a',
    'two-words': 'a b',
    good: 'good',
  })
  const problems = await SETTINGS.check(file('postern.yaml'), { POSTERN_DATA: file('data') })
  expect(JSON.stringify(problems.list)).not.toMatch(/a\\nb|é/)
  return problems.list.map(({ path, message }) => `${path.join('.')} ${message}`)
}

const noSecret = (file: string, why: string): string =>
  `names the file "${file}", whose content can be no secret: it ${why}`
const SEVERAL_LINES = noSecret('line-end', 'has more than one line, which no header can hold')
const SPACED = noSecret('spaced', 'begins or ends with white space')
const ONE_OF = 'must have exactly one of `basic`, `bearer`, `header`, `oauth2`'
const MADE = 'is a header that Postern makes itself, or that frames a message'
const UNSENDABLE = 'cannot stand in a header; expected visible ASCII, with spaces between'
const TOKEN = 'is no bearer token: letters, digits and -._~+/, then = if any, 16 KiB at most'
const client = 'clientId: postern, clientSecret: { file: good }'

describe('C8.7 postern check', () => {
  it.each<readonly [auth: string, others: string, problems: readonly string[]]>([
    ['{}', '', [ONE_OF]],
    ['{ bearer: { file: good }, header: { name: X-Key, value: { file: good } } }', '', [ONE_OF]],
    [
      '{ basic: { user: "a:b", password: { file: good } } }',
      '',
      ['.basic.user contains a colon, which ends the name of a user'],
    ],
    ['{ basic: { user: a, password: { file: line-end } } }', '', [`.basic.password ${SEVERAL_LINES}`]],
    ['{ bearer: { file: line-end } }', '', [`.bearer ${SEVERAL_LINES}`]],
    ['{ bearer: { file: not-ascii } }', '', [`.bearer ${TOKEN}`]],
    ['{ bearer: { file: two-words } }', '', [`.bearer ${TOKEN}`]],
    ['{ header: { name: X-Key, value: { file: line-end } } }', '', [`.header.value ${SEVERAL_LINES}`]],
    ['{ header: { name: X-Key, value: { file: not-ascii } } }', '', [`.header.value ${UNSENDABLE}`]],
    ['{ header: { name: X-Key, value: { file: spaced } } }', '', [`.header.value ${SPACED}`]],
    ['{ header: { name: X-Key, value: { file: two-words } } }', '', []],
    ...[
      'Host',
      'content_length',
      'Transfer-Encoding',
      'X-Postern-Subject',
      'Accept',
      'traceparent',
      'Connection',
    ].map(
      (name) =>
        [`{ header: { name: ${name}, value: { file: good } } }`, '', [`.header.name ${MADE}`]] as const,
    ),
    [
      '{ bearer: { file: good } }',
      ', forwardAuthorization: true',
      ['stands beside `forwardAuthorization`; expected one of the two'],
    ],
    [
      `{ oauth2: { tokenUrl: "http://id.example.com/token", ${client} } }`,
      '',
      ['.oauth2.tokenUrl is http to another machine: anyone on the way could read the secret and the token'],
    ],
    [
      `{ oauth2: { tokenUrl: "http://127.0.0.1:99999/token", ${client} } }`,
      '',
      ['.oauth2.tokenUrl is no URL'],
    ],
    [`{ oauth2: { tokenUrl: "http://[::1]/token?a=b", ${client} } }`, '', []],
    [
      `{ oauth2: { tokenUrl: "https://id.example.com/token", ${client}, tls: { ca: good } } }`,
      '',
      [
        '.oauth2.tls.ca names a file that is no certificate in PEM, or cannot be read (ERR_OSSL_PEM_NO_START_LINE)',
      ],
    ],
    [
      `{ oauth2: { tokenUrl: "https://id.example.com/token", ${client}, tls: { ca: nowhere } } }`,
      '',
      [
        '.oauth2.tls.ca names a file that is no certificate in PEM, or cannot be read (ENOENT: there is no such file or folder)',
      ],
    ],
  ])('C8.7 tells what is wrong with %s%s', async (auth, others, problems) => {
    const expected = problems.map((each) => `backends.funds.auth${each.startsWith('.') ? '' : ' '}${each}`)
    expect(await problemsOf(auth, others)).toEqual(expected)
  })

  it('C8.7 takes no secret that stands in the configuration itself', async () => {
    const [problem] = await problemsOf('{ bearer: abcdefgh }')
    expect(problem).toMatch(/^backends\.funds\.auth\.bearer .*expected \{ file: … \} or \{ env: … \}/)
    expect(problem).not.toContain('abcdefgh')
  })

  it('C8.7 warns of credentials that go with calls which nobody has checked', async () => {
    const problems = await problemsOf(
      '{ bearer: { file: good } }',
      '',
      'areas: { fund-data: { mode: report-only } }',
    )
    expect(problems).toContain(
      'backends.funds.auth goes with all calls of the area fund-data, which is report-only: anybody is answered as Postern is',
    )
  })

  it('C8.7 makes no request for a token', async () => {
    const endpoint = await startUpstream(answerJson({}))
    expect(await problemsOf(`{ oauth2: { tokenUrl: "${endpoint.url}", ${client} } }`)).toEqual([])
    expect(endpoint.connections).toHaveLength(0)
  })
})
