import { once } from 'node:events'
import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { replacedOver, startOver } from '../../support/over-module.ts'
import { openRaw } from '../../support/raw-http.ts'
import { bearer, expectFault, requestBytes } from '../../support/requests.ts'
import { answerJson, startUpstream, type UpstreamConnection } from '../../support/start-upstream.ts'
import { at } from '../../support/streaming.ts'

const over = replacedOver()

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const NEW = JSON.stringify({ Code: 'NEW1', Name: 'New' })
const JSON_BODY = { 'Content-Type': 'application/json' }

const dataOf = ({ body }: { readonly body: string }): unknown => JSON.parse(body).Data

describe('C8.9: what a module changes of a request', () => {
  it('C8.9 a module that changes nothing leaves request and answer as they would be without it', async () => {
    const { upstream, ask } = await over('{ request: () => undefined }', { base: '/base' })
    const answer = await ask({ target: `${LIST}?a=%41&b=..`, headers: { 'X-Own': 'kept' } })
    expect(answer.body).toBe('{"Errors":[],"Data":{"ok":true}}')
    const [got] = upstream.requests
    expect([got?.method, got?.target]).toEqual(['GET', `/base${LIST}?a=%41&b=..`])
    expect(got?.headers).toMatchObject({
      'x-own': ['kept'],
      'x-postern-business': ['ACME'],
      'accept-encoding': ['identity'],
      'x-request-id': [answer.headers['x-request-id']],
    })
    await ask({ method: 'POST', target: CREATE, body: NEW, headers: JSON_BODY })
    expect(String(upstream.requests[1]?.body)).toBe(NEW)
  })

  it('C8.9 method, path, query, headers and body are those that it gives; the rest is Postern’s', async () => {
    const { upstream, ask } = await over(
      `{ request: ({ business }) => ({
          method: 'PUT', path: '/v2/%7Efunds/' + business, query: { a: ['1', '2'], b: 'x y', c: undefined },
          headers: { 'X-New': 'n', 'x-own': 'changed', 'X-Gone': undefined, Authorization: 'Custom 1', Accept: 'text/csv' },
          body: { kind: 'value', value: { A: 1, B: undefined } } }) }`,
      { base: '/base' },
    )
    const answer = await ask({ target: `${LIST}?client=1`, headers: { 'X-Own': 'o', 'X-Gone': 'g' } })
    expect(answer.status).toBe(200)
    const [got] = upstream.requests
    expect(`${got?.method} ${got?.target}`).toBe('PUT /base/v2/~funds/ACME?a=1&a=2&b=x+y')
    expect(got?.headers).toMatchObject({
      'x-new': ['n'],
      'x-own': ['changed'],
      authorization: ['Custom 1'],
      accept: ['text/csv'],
      'content-type': ['application/json'],
      'content-length': ['7'],
      'x-postern-subject': [expect.any(String)],
    })
    expect(got?.headers).not.toHaveProperty('x-gone')
    expect(String(got?.body)).toBe('{"A":1}')
  })

  it.each([
    ['text', `{ kind: 'text', text: 'é', contentType: 'text/plain' }`, 'é'],
    ['bytes', `{ kind: 'bytes', bytes: new Uint8Array([65, 66]), contentType: 'a/b' }`, 'AB'],
    [
      'a stream',
      `{ kind: 'stream', stream: (await import('node:stream')).Readable.from(['a', 'b']), contentType: 'a/b' }`,
      'ab',
    ],
    ['none', `{ kind: 'none' }`, ''],
  ])('C8.9 its body may be %s', async (_kind, body, expected) => {
    const { upstream, ask } = await over(`{ request: async () => ({ body: ${body} }) }`)
    const answer = await ask({ method: 'POST', target: CREATE, body: NEW, headers: JSON_BODY })
    expect(answer.status, answer.body).toBe(200)
    expect(String(upstream.requests[0]?.body)).toBe(expected)
  })

  it('C8.9 the body that it sees is a value, from JSON and from a form; objects have no prototype', async () => {
    const { upstream, ask } = await over(
      `{ request: ({ body }) => ({ query: { seen: JSON.stringify(body.value), own: String(Object.getPrototypeOf(body.value)) } }) }`,
    )
    await ask({ method: 'POST', target: CREATE, body: NEW, headers: JSON_BODY })
    await ask({
      method: 'POST',
      target: CREATE,
      body: 'Code=NEW1&Name=New',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    })
    const seen = upstream.requests.map(({ target }) => new URL(target, 'http://x').searchParams)
    for (const query of seen) expect([query.get('seen'), query.get('own')]).toEqual([NEW, 'null'])
  })

  it('C8.9 a method that has no body leaves the client’s out', async () => {
    const { upstream, ask } = await over(`{ request: () => ({ method: 'GET' }) }`)
    await ask({ method: 'POST', target: CREATE, body: NEW, headers: JSON_BODY })
    expect(upstream.requests[0]).toMatchObject({ method: 'GET', body: Buffer.alloc(0) })
    expect(upstream.requests[0]?.headers).not.toHaveProperty('content-type')
  })

  it('C8.9 what the backend’s own section says wins, also for an operation', async () => {
    const { upstream, ask } = await over(`{ request: () => ({ headers: { 'X-A': '1' } }) }`, {
      change: (loaded) => ({
        ...loaded,
        actions: loaded.actions.map((action) =>
          action.action === 'fund-list' && action.methods.GET
            ? { ...action, methods: { GET: { ...action.methods.GET, upstream: { path: '/v9/{business}' } } } }
            : action,
        ),
      }),
    })
    await ask({ target: `${LIST}?x=1` })
    expect(upstream.requests[0]).toMatchObject({ target: '/v9/ACME?x=1', headers: { 'x-a': ['1'] } })
  })

  it('C8.9 a tenant, a header and a method of the backend’s section stand, whatever the module gives', async () => {
    const { upstream, ask } = await over(
      `{ request: ({ upstream }) => ({ query: 'Business=GLOBEX&a=1', headers: { 'X-Tenant': 'GLOBEX', 'X-Was': upstream.method + upstream.query } }) }`,
      { under: { query: { business: '{business}' }, headers: { 'X-Tenant': '{business}' }, method: 'POST' } },
    )
    await ask({ target: `${LIST}?business=GLOBEX` })
    const [got] = upstream.requests
    expect(`${got?.method} ${got?.target}`).toBe(`POST ${LIST}?a=1&business=ACME`)
    expect(got?.headers).toMatchObject({ 'x-tenant': ['ACME'], 'x-was': ['POST?business=ACME'] })
  })

  it('C8.9 call.upstream says what is sent, and `with` what would be', async () => {
    const { upstream, ask } = await over(
      `{ request: async ({ upstream }) => {
          const next = await upstream.with({ path: '/a/%42', query: 'q=1', method: 'PATCH', body: { kind: 'value', value: [1] } })
          const shown = ({ method, target, path, query, host, contentType, body }) =>
            [method, target, path, query, host, contentType, body && Buffer.from(body).toString()].join(' ')
          return { headers: { 'X-Now': shown(upstream), 'X-Next': shown(next) } } } }`,
      { base: '/base' },
    )
    await ask({ method: 'HEAD', target: `${LIST}?x=1` })
    const host = upstream.url.replace('http://', '')
    expect(upstream.requests[0]?.method).toBe('HEAD')
    expect(upstream.requests[0]?.headers['x-now']).toEqual([`HEAD /base${LIST}?x=1 ${LIST} ?x=1 ${host}`])
    expect(upstream.requests[0]?.headers['x-next']).toEqual([
      `PATCH /base/a/B?q=1 /a/B ?q=1 ${host} application/json [1]`,
    ])
  })

  it('C8.5 a GET that is sent as POST, or a POST as GET, is sent once', async () => {
    const reset = (connection: UpstreamConnection): void => connection.reset()
    const gets = await over(`{ request: () => ({ method: 'POST' }) }`, { behaviour: reset })
    expectFault(await gets.ask({ target: LIST }), 'upstream_unreachable')
    const posts = await over(`{ request: () => ({ method: 'GET' }) }`, { behaviour: reset })
    expectFault(
      await posts.ask({ method: 'POST', target: CREATE, body: NEW, headers: JSON_BODY }),
      'outcome_unknown',
    )
    const plain = await over(`{ request: () => ({ query: 'a' }) }`, { behaviour: reset })
    expectFault(await plain.ask({ target: LIST }), 'upstream_unreachable')
    expect([gets, posts, plain].map(({ upstream }) => upstream.requests.length)).toEqual([1, 1, 2])
  })
})

describe('C8.9: what a module makes of an answer', () => {
  const WEAK = expect.stringMatching(/^W\/"1-json\.[\w-]{8}"$/) as unknown
  const ITEM = answerJson(
    { a: 1 },
    { headers: { ETag: '"1"', 'X-Inside': 'i', Connection: 'X-Hop', 'X-Hop': 'h' } },
  )

  it('C8.9 it may answer with another status, other headers and another body, in JSON and XML', async () => {
    const { ask } = await over(
      `{ response: async (call, answer) => ({
          status: 201, headers: { ...answer.headers, 'X-Made': 'm' },
          body: { kind: 'value', value: { seen: await answer.json(), hop: answer.headers['x-hop'] ?? null } } }) }`,
      { behaviour: ITEM, module: { responseHeaders: ['X-Made'] } },
    )
    const answer = await ask({ target: LIST })
    expect([answer.status, dataOf(answer)]).toEqual([201, { seen: { a: 1 }, hop: null }])
    expect(answer.headers).toMatchObject({ etag: WEAK, 'x-made': 'm' })
    expect(answer.headers).not.toHaveProperty('x-inside')
    const xml = await ask({ target: LIST, headers: { Accept: 'application/xml' } })
    expect(xml.body).toContain('<Data><seen><a type="number">1</a></seen>')
  })

  it('C8.9 it sees every status; what it returns as it came is what it would be without it', async () => {
    const { ask } = await over(
      `{ response: (call, answer) => answer.status === 409
          ? { status: 400, body: { kind: 'errors', errors: [{ code: 'TAKEN', message: 'Taken.' }] } } : answer }`,
      {
        behaviour: (connection) => {
          const status = Number(/status=(\d+)/.exec(connection.request.target)?.[1])
          answerJson({ Errors: [{ Code: 'OWN', Message: 'Own.' }], Data: {} }, { status })(connection)
        },
      },
    )
    const taken = await ask({ target: `${LIST}?status=409` })
    expect([taken.status, JSON.parse(taken.body).Errors]).toEqual([
      400,
      [{ Code: 'TAKEN', Message: 'Taken.' }],
    ])
    const own = await ask({ target: `${LIST}?status=404` })
    expect([own.status, JSON.parse(own.body).Errors]).toEqual([404, [{ Code: 'OWN', Message: 'Own.' }]])
    expectFault(await ask({ target: `${LIST}?status=500` }), 'upstream_broken')
    expectFault(await ask({ target: `${LIST}?status=503` }), 'upstream_unavailable')
    expectFault(await ask({ target: `${LIST}?status=302` }), 'upstream_broken')
  })

  it('C8.9 `request` and `response` are short for an `answer` that forwards once', async () => {
    const parts = `const request = ({ business }) => ({ query: 'of=' + business })
      const response = async (call, answer) => ({ body: { kind: 'value', value: { got: await answer.json() } } })`
    const form = (members: string) => `(() => { ${parts}; return ${members} })()`
    const long = `{ answer: async (call) => response(call, await call.forward(await request(call))) }`
    for (const members of ['{ request, response }', long]) {
      const { upstream, ask } = await over(form(members), { behaviour: ITEM })
      expect(dataOf(await ask({ target: `${LIST}?x=1` }))).toEqual({ got: { a: 1 } })
      expect(upstream.requests.map(({ target }) => target)).toEqual([`${LIST}?of=ACME`])
    }
  })

  it('C8.9 an answer whose status and headers alone it changes keeps its body, byte for byte', async () => {
    const text = '{"b":1.10,\n"a":"\\u0041"} '
    const { ask } = await over(
      `{ response: (call, answer) => ({ ...answer, status: 200, headers: { ...answer.headers, ETag: '"own"' } }) }`,
      { behaviour: (connection) => connection.respond({ status: 201, headers: JSON_BODY, body: text }) },
    )
    const answer = await ask({ target: LIST })
    expect([answer.status, answer.body]).toEqual([200, `{"Errors":[],"Data":${text}}`])
    expect(answer.headers['etag']).toMatch(/^"own-json\.[\w-]{8}"$/)
  })

  it('C8.9 an answer that it has read passes on as well', async () => {
    const { ask } = await over(
      `{ response: async (call, answer) => {
          const seen = [await answer.json(), await answer.text(), (await answer.bytes()).length]
          if (seen[0].ok !== true || seen[2] !== 11) throw new Error('not read')
          return answer } }`,
    )
    expect(dataOf(await ask({ target: LIST }))).toEqual({ ok: true })
  })

  it('C8.9 to `response` a HEAD is a GET, and its client gets the head', async () => {
    const { upstream, ask } = await over(
      `{ response: async (call, answer) => ({ headers: answer.headers, body: { kind: 'value', value: await answer.json() } }) }`,
      { behaviour: ITEM },
    )
    const answer = await ask({ method: 'HEAD', target: LIST })
    expect([answer.status, answer.body, answer.headers['etag']]).toEqual([200, '', WEAK])
    expect(upstream.requests[0]?.method).toBe('GET')
  })

  it('C8.9 a 304 to the client’s own condition passes without it; codings and ranges are not asked for', async () => {
    const { upstream, ask } = await over(`{ response: () => { throw new Error('not called') } }`, {
      behaviour: (connection) => connection.raw('HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'),
      under: { payload: 'envelope' },
    })
    const headers = { 'If-None-Match': '"1"', Range: 'bytes=1-', 'Accept-Encoding': 'gzip' }
    expect((await ask({ target: LIST, headers })).status).toBe(304)
    const other = await ask({ target: LIST, headers: { 'If-None-Match': '"0"' } })
    expect(other.headers['etag']).toMatch(/^W\/"1-/)
    expect(upstream.requests[0]?.headers).toMatchObject({
      'if-none-match': ['"1"'],
      'accept-encoding': ['identity'],
    })
    expect(upstream.requests[0]?.headers).not.toHaveProperty('range')
  })

  it('C8.9 a download passes a module that does not look at it, in pieces and with ranges', async () => {
    const { upstream, gateway, token } = await over(`{ request: () => ({ query: 'x=1' }) }`, {
      behaviour: (connection) =>
        connection.raw(
          'HTTP/1.1 206 X\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes 1-4/5\r\n' +
            'Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n',
        ),
    })
    const client = await openRaw(gateway.port)
    client.send(requestBytes({ target: at('download'), headers: { ...bearer(token), Range: 'bytes=1-' } }))
    await expect.poll(() => client.unread).toContain('\r\nab\r\n')
    upstream.connections[0]?.socket.write('2\r\ncd\r\n0\r\n\r\n')
    expect(await client.response()).toMatchObject({ status: 206, body: 'abcd', whole: true })
    expect(upstream.requests[0]?.headers).toMatchObject({ range: ['bytes=1-'] })
    client.destroy()
  })

  /** An answer made of a stream of the upstream's, while another answer of it is unread. */
  const MADE = `{ answer: async ({ query, forward }) => {
      const { PassThrough } = await import('node:stream')
      const [answer] = [await forward({ path: '/first' }), await forward({ path: '/unread' })]
      const stream = new PassThrough()
      answer.stream().on('data', (piece) => {
        stream.write(piece)
        if (query.has('late') && String(piece) === 'cd') forward({ path: '/late' }).catch(({ code }) => stream.write(code))
        if (query.has('fails') && String(piece) === 'cd') stream.destroy(new Error('it fails'))
      }).on('end', () => setImmediate(() => stream.end()))
      return { body: { kind: 'stream', stream, contentType: 'application/octet-stream' } } } }`

  /** Asks for it, as far as its first piece. */
  async function downloadMade({ query = '', method = 'GET' } = {}) {
    const { upstream, gateway, token } = await over(MADE, {
      behaviour: (connection) =>
        connection.raw('HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n'),
    })
    const client = await openRaw(gateway.port)
    client.send(requestBytes({ method, target: `${at('download')}${query}`, headers: bearer(token) }))
    if (method === 'HEAD') expect(await client.response({ head: true })).toMatchObject({ status: 200 })
    else await expect.poll(() => client.unread).toContain('\r\nab\r\n')
    const of = (path: string) => upstream.connections.find(({ bytes }) => bytes.includes(path))?.socket
    const [first, unread] = [of('/first'), of('/unread')]
    if (first === undefined || unread === undefined) throw new Error('not sent')
    return { upstream, client, first, unread }
  }

  const isClosed = (socket: Socket) => socket.destroyed || once(socket, 'close')

  it('C8.9 a stream that is made of the upstream’s passes to its end, and other answers are let go then', async () => {
    const { client, first, unread } = await downloadMade()
    expect(unread.destroyed).toBe(false)
    first.write('2\r\ncd\r\n0\r\n\r\n')
    expect(await client.response()).toMatchObject({ status: 200, body: 'abcd', whole: true })
    await isClosed(unread)
    client.destroy()
  })

  it('C8.9 nothing more is sent when a stream has begun, though it is not over', async () => {
    const { upstream, client, first } = await downloadMade({ query: '?late' })
    first.write('2\r\ncd\r\n0\r\n\r\n')
    expect((await client.response()).body).toBe('abcdupstream_broken')
    expect(upstream.connections.some(({ bytes }) => bytes.includes('/late'))).toBe(false)
    client.destroy()
  })

  it.each([
    ['whose client leaves', {}],
    ['that fails', { query: '?fails' }],
    ['for a HEAD', { method: 'HEAD' }],
  ])('C8.9 of a stream %s all that it was made of is let go', async (_case, asked) => {
    const { client, first, unread } = await downloadMade(asked)
    if ('query' in asked) first.write('2\r\ncd\r\n')
    else if (!('method' in asked)) client.destroy()
    await Promise.all([isClosed(first), isClosed(unread)])
    client.destroy()
  })

  it('C8.9 a service that speaks XML: the module gets bytes, and answers values to both kinds of client', async () => {
    const { upstream, ask } = await over(
      `{ request: ({ body }) => body.kind === 'bytes' ? { headers: { 'X-Size': String(body.bytes.length) } } : undefined,
         response: async (call, answer) => call.query.has('made')
           ? { body: { kind: 'value', value: { Text: await answer.text() } } } : answer }`,
      {
        under: { format: 'xml' },
        behaviour: (connection) =>
          connection.respond({ headers: { 'Content-Type': 'application/xml' }, body: '<X><A>1</A></X>' }),
      },
    )
    expect(dataOf(await ask({ target: LIST }))).toEqual({ A: '1' })
    expect(dataOf(await ask({ target: `${LIST}?made` }))).toEqual({ Text: '<X><A>1</A></X>' })
    const xml = await ask({ target: `${LIST}?made`, headers: { Accept: 'application/xml' } })
    expect(xml.body).toContain('<Data><Text>&lt;X')
    await ask({ method: 'POST', target: CREATE, body: NEW, headers: JSON_BODY })
    const written = upstream.requests.at(-1)
    expect(written?.headers['x-size']).toEqual([String(written?.body.length)])
  })
})

describe('C8.9: the two backends', () => {
  it('C8.9 `request` and `response` have a time each; the forwarder has its own in between', async () => {
    const slow = (connection: UpstreamConnection): void =>
      void setTimeout(() => answerJson({ slow: true })(connection), 1300)
    const patient = await over('{ request: () => undefined, response: (call, answer) => answer }', {
      module: { timeout: 1000 }, // for being imported too
      behaviour: slow,
    })
    expect(dataOf(await patient.ask({ target: LIST }))).toEqual({ slow: true })
    for (const hook of ['request', 'response']) {
      const { ask } = await over(`{ ${hook}: () => new Promise(() => undefined) }`, {
        module: { timeout: 1000 },
      })
      expectFault(await ask({ target: LIST }), 'upstream_timeout')
    }
  })

  it('C8.9 it is ready only where its forwarder is', async () => {
    const { ask, gateway } = await over('{ request: () => undefined }', {
      under: { ejection: { failures: 1, for: 60_000 } },
      behaviour: (connection) => connection.reset(),
    })
    const readiness = async () => (await fetch(`${gateway.adminUrl}/health/ready`)).text()
    expect(await readiness()).not.toContain('backend')
    await ask({ target: LIST })
    expect(await readiness()).toMatch(/backend service.*backend funds/s)
  })

  it('C8.9 a replaced forwarder is used by the module from the next call on', async () => {
    const { upstream, ask, gateway } = await over('{ request: () => ({ query: "x" }) }')
    const other = await startUpstream()
    await ask({ target: LIST })
    const { backends } = gateway.configuration
    const service = { ...backends['service'], target: other.url } as (typeof backends)[string]
    await gateway.worker?.prepare({ ...gateway.configuration, backends: { ...backends, service } })
    await gateway.worker?.commit()
    await ask({ target: LIST })
    expect([upstream.requests.length, other.requests.length]).toEqual([1, 1])
  })
})

describe('C8.9: a module that sends several requests', () => {
  it('C8.9 20 of one call are sent, 8 of them at once; the 21st is not', async () => {
    let open = 0
    let most = 0
    const { upstream, ask } = await over(
      `{ answer: async ({ query, forward }) => {
          const count = Number(query.get('n'))
          const all = await Promise.all(Array.from({ length: count }, (_, n) => forward({ path: '/n/' + n, query: '' })))
          return { body: { kind: 'value', value: all.length } } } }`,
      {
        behaviour: (connection) => {
          most = Math.max(most, ++open)
          setTimeout(() => {
            open--
            answerJson({})(connection)
          }, 5)
        },
      },
    )
    expect(dataOf(await ask({ target: `${LIST}?n=20` }))).toEqual({ Value: 20 })
    expect(upstream.requests).toHaveLength(20)
    expect(most).toBe(8)
    expectFault(await ask({ target: `${LIST}?n=21` }), 'upstream_broken')
  })

  it('C8.9 a client’s body that streams is sent once, and not beside the module’s own reading', async () => {
    const upload = {
      method: 'POST',
      target: at('upload'),
      body: 'abc',
      headers: { 'Content-Type': 'application/octet-stream' },
    }
    const once = await over(`{ answer: (call) => call.forward() }`)
    expect((await once.ask(upload)).status).toBe(200)
    expect(String(once.upstream.requests[0]?.body)).toBe('abc')
    const twice = await over(`{ answer: async (call) => (await call.forward(), call.forward()) }`)
    expectFault(await twice.ask(upload), 'outcome_unknown')
    expect(twice.upstream.requests).toHaveLength(1)
    const own = await over(
      `{ request: async ({ body }) => ({ body: { kind: 'text', text: Buffer.concat(await body.stream.toArray()) + '!', contentType: 'a/b' } }) }`,
    )
    expect((await own.ask(upload)).status).toBe(200)
    expect(String(own.upstream.requests[0]?.body)).toBe('abc!')
  })

  it('C8.9 a client’s body that streams is not taken after it was sent, wholly or in part', async () => {
    const { ask } = await over(
      `{ answer: async ({ body, forward }) => {
          await forward().catch(() => undefined)
          try { await body.stream.toArray() } catch (error) {
            return { body: { kind: 'value', value: error.facts.detail } } } } }`,
      { behaviour: (connection) => connection.reset() },
    )
    const headers = { 'Content-Type': 'application/octet-stream' }
    const answer = await ask({ method: 'POST', target: at('upload'), body: 'abc', headers })
    expect(dataOf(answer)).toEqual({ Value: 'the module took the client’s body, which was sent already' })
  })

  it('C8.9 a stream for a request that is not sent is closed', async () => {
    const { upstream, ask } = await over(
      `(() => {
        let forwardBefore
        return { answer: async ({ query, forward }) => {
          const stream = new (await import('node:stream')).Readable({ read() {}, destroy() { throw new Error('mine') } })
          const changes = { method: query.get('method'), body: { kind: 'stream', stream, contentType: query.get('type') } }
          for (let n = 0; n < Number(query.get('before')); n++) await forward()
          const error = await (query.has('over') ? forwardBefore : forward)(changes).catch((error) => error)
          forwardBefore = forward
          return { body: { kind: 'value', value: { code: error.code, closed: stream.destroyed } } } } }
      })()`,
    )
    const cases = ['method=GET&type=a/b', 'method=get&type=a/b', 'method=PUT&type=ab']
    for (const query of [...cases, 'method=PUT&type=a/b&over', 'method=PUT&type=a/b&before=20'])
      expect({ query, ...Object(dataOf(await ask({ target: `${LIST}?${query}` }))) }).toEqual({
        query,
        code: 'upstream_broken',
        closed: true,
      })
    expect(upstream.requests.filter(({ method }) => method === 'PUT')).toEqual([])
  })

  it('C8.9 a request that fails tells why by its code; thrown on it is 503, as a cause 500', async () => {
    const { ask } = await over(
      `{ answer: async ({ query, forward }) => {
          try { return await forward() } catch (error) {
            if (query.has('throw')) throw error
            if (query.has('wrap')) throw new Error('wrapped', { cause: error })
            return { body: { kind: 'value', value: { code: error.code, isError: error instanceof Error } } } } } }`,
      { behaviour: (connection) => connection.reset() },
    )
    expect(dataOf(await ask({ target: LIST }))).toEqual({ code: 'upstream_unreachable', isError: true })
    expectFault(await ask({ target: `${LIST}?throw` }), 'upstream_unreachable')
    expectFault(await ask({ target: `${LIST}?wrap` }), 'upstream_broken')
  })

  it('C8.9 what is under way when the call is answered is cancelled', async () => {
    const { upstream, ask } = await over(
      `{ answer: async (call) => {
          const slow = call.forward({ path: '/slow' })
          await call.forward({ path: '/fast' })
          return { body: { kind: 'value', value: {} } } } }`,
      {
        behaviour: (connection) =>
          connection.request.target.startsWith('/fast') && answerJson({})(connection),
      },
    )
    expect((await ask({ target: LIST })).status).toBe(200)
    const slow = upstream.connections.find(({ bytes }) => bytes.includes('/slow'))
    if (slow !== undefined && !slow.socket.destroyed) await once(slow.socket, 'close')
  })

  it('C8.9 what is under way when its client leaves is cancelled', async () => {
    const { upstream, gateway, token } = await over(`{ answer: (call) => call.forward() }`, {
      behaviour: () => undefined,
    })
    const client = await openRaw(gateway.port)
    client.send(requestBytes({ target: LIST, headers: bearer(token) }))
    await upstream.received(1)
    client.destroy()
    const [connection] = upstream.connections
    if (connection && !connection.socket.destroyed) await once(connection.socket, 'close')
  })

  it('C8.9 all that a call reads of answers has a limit', async () => {
    const { ask } = await startOver(
      `{ answer: async (call) => {
          for (let n = 0; n < 3; n++) await (await call.forward()).text()
          return { body: { kind: 'value', value: {} } } } }`,
      {
        behaviour: answerJson('x'.repeat(600)),
        change: (loaded) => ({
          ...loaded,
          server: { ...loaded.server, limits: { ...loaded.server.limits, answer: 1500 } },
        }),
      },
    )
    expectFault(await ask({ target: LIST }), 'answer_too_large')
  })

  it('T4.1 takes __proto__ in an upstream’s JSON for data', async () => {
    const { ask } = await over(
      `{ response: async (call, answer) => {
          const value = await answer.json()
          return { body: { kind: 'value', value: { own: Object.hasOwn(value, '__proto__'), polluted: value.a ?? null, all: ({}).a ?? null } } } } }`,
      {
        behaviour: (connection) => connection.respond({ headers: JSON_BODY, body: '{"__proto__":{"a":1}}' }),
      },
    )
    expect(dataOf(await ask({ target: LIST }))).toEqual({ own: true, polluted: null, all: null })
  })
})
