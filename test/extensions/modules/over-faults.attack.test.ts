import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HOSTILE } from '../../support/hostile-segments.ts'
import { bearer, expectFault, send } from '../../support/requests.ts'
import { DEMO, KEEPS_NOTHING, spawnPostern, type SpawnedPostern } from '../../support/spawn-postern.ts'
import {
  answerJson,
  openUpstream,
  type Upstream,
  type UpstreamBehaviour,
} from '../../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

/**
 * C8.9: what a module over a forwarder does wrong is the fault of its call: nothing of it reaches the upstream, nobody
 * else is harmed. In a process of its own: the test runner has a listener for uncaught exceptions too.
 */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

/** By what the client names in `bug`. The first argument of each is what it gives in `given`, as JSON. */
const BUGGY = `
  import { Readable } from 'node:stream'
  const never = () => new Promise(() => undefined)
  const soon = (work) => setTimeout(work, 5)
  const boom = (what) => { throw new Error(what) }
  const value = (value) => ({ body: { kind: 'value', value } })
  const bugs = {
    changes: async (given, call, forward) => value((await forward(given)).status),
    throws: () => boom('the password is hunter2'),
    rejects: async () => { throw null },
    nothing: () => undefined,
    hangs: () => never(),
    hangsAfter: async (given, call, forward) => (await forward(), never()),
    slowUpstream: (given, call, forward) => forward({ path: '/never' }),
    answers: (given) => given,
    forged: (given, call, forward) => ({ body: { kind: 'upstream', contentType: 'application/json', length: 2 } }),
    copied: async (given, call, forward) => ({ body: { ...(await forward()).body } }),
    twice: async (given, call, forward) => {
      const answer = await forward()
      answer.stream().resume()
      return answer
    },
    timer: (given, call, forward) => (soon(() => boom('in a timer')), never()),
    forgotten: (given, call, forward) => (void forward({ path: '/a/../b' }), never()),
    derived: (given, call, forward) => (void forward({ path: '/ok' }).then(() => boom('in a promise')), never()),
    listener: async (given, call, forward) => {
      const stream = (await forward({ path: '/big' })).stream()
      let length = 0 // the first pieces come in the module's own context, the others in that of the socket
      stream.on('data', (piece) => (length += piece.length) > 1_000_000 && boom('in a listener of a stream'))
      return never()
    },
    aborted: async (given, call, forward) => {
      call.signal.addEventListener('abort', () => boom('in a listener of the signal'))
      return forward({ path: '/never' })
    },
    notJson: async (given, call, forward) => value(await (await forward({ path: '/text' })).json()),
    gzip: async (given, call, forward) => value(await (await forward({ path: '/gzip' })).json()),
    cut: async (given, call, forward) => value(await (await forward({ path: '/cut' })).text()),
    brokenStream: async (given, call, forward) => value((await forward({ method: 'POST', path: '/sink', body: {
      kind: 'stream', contentType: 'a/b', stream: new Readable({ read() { this.destroy(new Error('source broke')) } }) } })).status),
    late: (given, call, forward) => (setTimeout(() => forward({ path: '/late' }), 20), value({})),
    left: (given, call, forward) => (void forward({ path: '/never' }), value({})),
    longPath: (given, call, forward) => forward({ path: '/' + 'x'.repeat(8192) }),
    longHeader: (given, call, forward) => forward({ headers: { 'X-Own': 'x'.repeat(16 * 1024) } }),
    manyHeaders: (given, call, forward) =>
      forward({ headers: Object.fromEntries(Array.from({ length: 101 }, (_, n) => ['X-' + n, 'x'])) }),
    fine: async (given, call, forward) => value(await (await forward({ path: '/ok' })).json()),
  }
  export default () => ({
    answer: (call) =>
      bugs[call.query.get('bug')](JSON.parse(call.query.get('given') ?? 'null') ?? undefined, call, call.forward),
  })`

const config = (url: string): string => `extends: ${DEMO}
${KEEPS_NOTHING}
backends:
  sample:
  service: { kind: http, target: '${url}/base' }
  funds: { kind: module, file: buggy.mjs, over: service, timeout: 1s }
areas:
  fund-data: { backend: funds }
  member-data: { backend: service }
`

const JSON_TYPE = { 'Content-Type': 'application/json' }
const BEHAVIOURS: Readonly<Record<string, UpstreamBehaviour>> = {
  '/base/never': () => undefined,
  '/base/sink': () => undefined,
  '/base/text': (connection) => connection.respond({ headers: JSON_TYPE, body: 'no JSON' }),
  '/base/gzip': (connection) =>
    connection.respond({ headers: { ...JSON_TYPE, 'Content-Encoding': 'gzip' }, body: '{}' }),
  '/base/cut': (connection) => {
    connection.raw('HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\nabc')
    connection.socket.end()
  },
  '/base/big': (connection) => connection.respond({ body: 'x'.repeat(3_000_000) }),
}

const folder = mkdtempSync(join(tmpdir(), 'postern-module-'))
let upstream: Upstream
let gateway: SpawnedPostern
let ask: (bug: string, given?: unknown) => ReturnType<typeof send>

beforeAll(async () => {
  upstream = await openUpstream((connection) => {
    const behaviour = BEHAVIOURS[connection.request.target.replace(/\?.*/, '')] ?? answerJson({ Fine: true })
    behaviour(connection)
  })
  writeFileSync(join(folder, 'buggy.mjs'), BUGGY)
  writeFileSync(join(folder, 'buggy.yaml'), config(upstream.url))
  gateway = await spawnPostern({ config: join(folder, 'buggy.yaml') })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  ask = (bug, given) => {
    const query = new URLSearchParams({ bug, ...(given !== undefined && { given: JSON.stringify(given) }) })
    return send(gateway, { target: `${LIST}?${query.toString()}`, headers: bearer(access_token) })
  }
})
afterAll(async () => {
  await gateway.stop()
  await upstream.close()
  rmSync(folder, { recursive: true })
})

/** What came of a request that a module wanted to send: its client's answer, and what the upstream got. */
async function sent(given: unknown) {
  const count = upstream.requests.length
  const answer = await ask('changes', given)
  return { answer, received: upstream.requests.slice(count) }
}

async function expectUnsent(given: unknown): Promise<void> {
  const { answer, received } = await sent(given)
  expectFault(answer, 'upstream_broken')
  expect(received).toEqual([])
}

describe('C8.9: what a module gives is checked before anything is sent', () => {
  it('C8.9 T1.2 no spelling of a path leaves the path of the target', async () => {
    for (const hostile of HOSTILE) {
      const { answer, received } = await sent({ path: `/x/${hostile}/${hostile}/y`, query: '' })
      expect({ hostile, status: answer.status, received: received.length }).toEqual({
        hostile,
        status: 500,
        received: 0,
      })
    }
  })

  it.each([
    ['an absolute URL', 'http://evil.example/x'],
    ['a network path', '//evil.example/x'],
    ['a relative path', 'x'],
    ['an empty path', ''],
    ['a query in it', '/x?y=1'],
    ['a space and a second line', '/x HTTP/1.1\r\nHost: evil'],
    ['what is no text', 7],
    ['a list', ['/x']],
  ])('C8.9 a path that is %s is 500, and is not sent', async (_case, path) => {
    await expectUnsent({ path })
  })

  it.each([
    ['a line end', 'a=1\r\nX: y'],
    ['a fragment', 'a#b'],
    ['a space', 'a b'],
    ['what is not ASCII', 'a=é'],
    ['a value that is no text', { a: 1 }],
  ])('C8.9 a query with %s is 500, and is not sent', async (_case, query) => {
    await expectUnsent({ query })
  })

  it.each([
    'Host',
    'Content-Length',
    'Content-Type',
    'Transfer-Encoding',
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Upgrade',
    'Expect',
    'Accept-Encoding',
    'X-Request-Id',
    'traceparent',
    'Forwarded',
    'X-Forwarded-For',
    'X-Postern-Subject',
    'x_postern_business',
    'X.Postern.Token',
    'Proxy-Authorization',
    'a b',
    '',
    'X\r\nHost',
  ])('C8.9 the header %j cannot be changed: 500, and nothing is sent', async (name) => {
    await expectUnsent({ headers: { [name]: '1' } })
  })

  it('C8.9 tells in the log which header it was', async () => {
    await expectUnsent({ headers: { 'X-Postern-Fund': 'OTHER' } })
    await expect.poll(() => gateway.output(), FLUSHED).toContain('X-Postern-Fund')
  })

  it.each([['a\r\nX-Evil: 1'], ['a\nb'], ['a\0'], ['é\u{1f600}'], [7]])(
    'T2.7 the header’s value %j is 500, and nothing is sent',
    async (value) => {
      await expectUnsent({ headers: { 'X-Own': value } })
    },
  )

  it.each(['CONNECT', 'TRACE', 'get', 'GET /x', '', 'A'.repeat(21), 7])(
    'C8.9 the method %j is 500, and nothing is sent',
    async (method) => {
      await expectUnsent({ method })
    },
  )

  it.each([
    ['a body to a GET', { body: { kind: 'value', value: 1 } }],
    ['no type', { method: 'POST', body: { kind: 'text', text: 'a' } }],
    [
      'a type that ends its line',
      { method: 'POST', body: { kind: 'text', text: 'a', contentType: 'a/b\r\nX: y' } },
    ],
    ['an unknown kind', { method: 'POST', body: { kind: '__proto__' } }],
    ['no text', { method: 'POST', body: { kind: 'text', text: 1, contentType: 'a/b' } }],
    ['changes that are none', 'a'],
    ['headers that are none', { headers: 'a' }],
  ])('C8.9 %s is 500, and nothing is sent', async (_case, given) => {
    await expectUnsent(given)
  })

  it.each(['longPath', 'longHeader', 'manyHeaders'])('C8.9 %s is 500, and nothing is sent', async (bug) => {
    const count = upstream.requests.length
    expectFault(await ask(bug), 'upstream_broken')
    expect(upstream.requests).toHaveLength(count)
  })

  it('T4.1 takes __proto__ for a name like others', async () => {
    const { answer, received } = await sent(
      JSON.parse('{"headers":{"__proto__":"a"},"__proto__":{"path":"/x"}}'),
    )
    expect(answer.status).toBe(200)
    expect(received[0]?.target).toContain(`/base${LIST}`)
    expect(received[0]?.headers['__proto__']).toEqual(['a'])
  })
})

const FAULTS = {
  throws: 'upstream_broken',
  rejects: 'upstream_broken',
  nothing: 'upstream_broken',
  hangs: 'upstream_timeout',
  hangsAfter: 'upstream_timeout',
  slowUpstream: 'upstream_timeout',
  forged: 'upstream_broken',
  copied: 'upstream_broken',
  twice: 'upstream_broken',
  timer: 'upstream_broken',
  forgotten: 'upstream_broken',
  derived: 'upstream_broken',
  listener: 'upstream_broken',
  aborted: 'upstream_timeout',
  notJson: 'upstream_broken',
  gzip: 'upstream_broken',
  cut: 'upstream_unreachable',
} as const

/** Lines are written once a second at the latest. */
const FLUSHED = { timeout: 30_000 }

describe('C8.9: what a module does wrong is the fault of its call', () => {
  it.each(Object.entries(FAULTS))('C8.9 %s is %s, and others go on', async (bug, fault) => {
    const [answer, other] = await Promise.all([ask(bug), ask('fine')])
    expectFault(answer, fault)
    expect(JSON.stringify(answer)).not.toContain('hunter2')
    expect(other.body).toBe('{"Errors":[],"Data":{"Fine":true}}')
  })

  it('C8.9 a body that breaks is no success, and its request is not whole upstream', async () => {
    const count = upstream.requests.length
    const answer = await ask('brokenStream')
    expect(answer.status).toBeGreaterThanOrEqual(500)
    expect(upstream.requests.slice(count)).toEqual([])
  })

  it.each([
    ['a status of none', { status: 99 }],
    ['a header that ends its line', { headers: { ETag: 'a\r\nX: y' } }],
    ['a body of no kind', { body: { kind: 'upstream' } }],
    ['errors with a 200', { body: { kind: 'errors', errors: [{ code: 'A', message: 'b' }] } }],
  ])('C8.9 an answer with %s is 500', async (_case, given) => {
    expectFault(await ask('answers', given), 'upstream_broken')
  })

  it('C8.9 nothing is sent for a call that is over, and the log tells of it', async () => {
    expect((await ask('late')).status).toBe(200)
    await expect.poll(() => gateway.output(), FLUSHED).toContain('a call that was over')
    expect(upstream.requests.filter(({ target }) => target.startsWith('/base/late'))).toEqual([])
    expect((await ask('fine')).status).toBe(200)
  })

  it('C8.9 what is under way at the deadline, or behind the answer, is cancelled', async () => {
    for (const bug of ['slowUpstream', 'left']) {
      const count = upstream.connections.length
      await ask(bug)
      const waiting = upstream.connections.slice(count).filter(({ bytes }) => bytes.includes('/never'))
      for (const { socket } of waiting) if (!socket.destroyed) await once(socket, 'close')
    }
    expect((await ask('fine')).status).toBe(200)
  })
})
