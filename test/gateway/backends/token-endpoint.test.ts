import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TokenEndpoint } from '../../../src/gateway/backends/forward/auth/token-endpoint.ts'
import { after as systemAfter, type After } from '../../../src/base/kernel/clock.ts'
import { certificateFolder, makeAuthority } from '../../support/certificates.ts'
import { manualAfter } from '../../support/manual-after.ts'
import {
  answerJson,
  startUpstream,
  type UpstreamAnswer,
  type UpstreamBehaviour,
} from '../../support/start-upstream.ts'
import { grant, oauth2 } from '../../support/token-endpoint.ts'

function open(url: string, after: After = systemAfter): TokenEndpoint {
  const endpoint = new TokenEndpoint(oauth2(url).oauth2, undefined, after)
  onTestFinished(() => endpoint.close())
  return endpoint
}

const answering =
  (answer: UpstreamAnswer): UpstreamBehaviour =>
  (connection) =>
    connection.respond(answer)
const json = (body: string): UpstreamBehaviour =>
  answering({ headers: { 'Content-Type': 'application/json' }, body })

const LARGE = JSON.stringify({ access_token: 't', token_type: 'bearer', more: 'x'.repeat(65 * 1024) })
const ENDLESS: UpstreamBehaviour = (connection) => {
  const { socket } = connection
  connection.raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n')
  const piece = `1000\r\n${' '.repeat(0x1000)}\r\n`
  const more = (): void => {
    while (!socket.destroyed && socket.write(piece));
  }
  socket.on('drain', more)
  more()
}
const NO_OBJECT = 'its answer is no JSON object'
const NO_TOKEN = 'its access_token is missing, or cannot be sent'

describe('a token endpoint', () => {
  it.each<[string, UpstreamBehaviour, string]>([
    ['500', answering({ status: 500 }), 'it answered 500'],
    ['204', answering({ status: 204 }), 'it answered 204'],
    [
      '400 with an error',
      answerJson({ error: 'invalid_scope' }, { status: 400 }),
      'it answered 400 (invalid_scope)',
    ],
    ['401 with words of its own', answerJson({ error: 'a secret' }, { status: 401 }), 'it answered 401'],
    [
      'an error that is no text',
      answerJson({ error: ['invalid_scope'] }, { status: 401 }),
      'it answered 401',
    ],
    [
      'a redirect',
      answering({ status: 307, headers: { Location: '/elsewhere' } }),
      'it answered 307, and redirects are not followed',
    ],
    ['nothing', (connection) => connection.reset(), 'it cannot be asked (ECONNRESET)'],
    [
      'what is not HTTP',
      (connection) => connection.raw('a secret\r\n\r\n'),
      'it cannot be asked (MalformedResponse: the status line is not one of HTTP/1.1)',
    ],
    ['HTML', answering({ headers: { 'Content-Type': 'text/html' }, body: '{}' }), NO_OBJECT],
    ['no type', answering({ body: '{"access_token":"a","token_type":"bearer"}' }), NO_OBJECT],
    ['garbage', json('{"access_token'), NO_OBJECT],
    ['nothing at all', json(''), NO_OBJECT],
    ['a list', json('[]'), NO_OBJECT],
    ['null', json('null'), NO_OBJECT],
    ['a number', json('1e400'), NO_OBJECT],
    ['two tokens', json('{"access_token":"a","token_type":"bearer","access_token":"b"}'), NO_OBJECT],
    ['65 KiB', json(LARGE), 'its answer is larger than 64 KiB'],
    ['an answer without end', ENDLESS, 'its answer is larger than 64 KiB'],
    ['no token', grant('', { access_token: undefined }), NO_TOKEN],
    ['an empty token', grant(''), NO_TOKEN],
    ['a number as token', grant('', { access_token: 1 }), NO_TOKEN],
    ['a token that ends its line', grant('a\r\nX-Evil: 1'), NO_TOKEN],
    ['a token with a space', grant('a b'), NO_TOKEN],
    ['a token outside ASCII', grant('é'), NO_TOKEN],
    ['a token of 17 KiB', grant('a'.repeat(17 * 1024)), NO_TOKEN],
    ['another type', grant('a', { token_type: 'mac' }), 'its token_type is not bearer'],
    ['no token_type', grant('a', { token_type: undefined }), 'its token_type is not bearer'],
    ['a life in words', grant('a', { expires_in: 'soon' }), 'its expires_in is no number'],
    ['a life that is true', grant('a', { expires_in: true }), 'its expires_in is no number'],
    ['a life in hexadecimal', grant('a', { expires_in: '0x10' }), 'its expires_in is no number'],
  ])(
    'C8.7 gives no token by answering %s, and the reason repeats nothing of it',
    async (_what, behaviour, reason) => {
      const upstream = await startUpstream(behaviour)
      await expect(open(upstream.url).ask()).rejects.toMatchObject({ name: 'NoToken', message: reason })
      expect(upstream.requests).toHaveLength(1)
    },
  )

  it.each([
    ['a number', 3600, 3_600_000],
    ['a text', '3600', 3_600_000],
    ['a fraction', 1.5, 1500],
    ['less than nothing', -1, -1000],
    ['more than any clock tells', 1e300, 1e303],
    ['null', null, undefined],
    ['nothing', undefined, undefined],
  ])('C8.7 tells the life of a token by %s', async (_what, told, life) => {
    const upstream = await startUpstream(grant('a.b-c_d~e+f/g==', { expires_in: told }))
    expect(await open(upstream.url).ask()).toEqual({ accessToken: 'a.b-c_d~e+f/g==', life })
  })

  it('C8.7 takes bearer in any case', async () => {
    const upstream = await startUpstream(grant('a', { token_type: 'bEaReR' }))
    expect(await open(upstream.url).ask()).toMatchObject({ accessToken: 'a' })
  })

  it('C8.7 one that sends a byte now and then has 5 s for the whole of its answer', async () => {
    const timers = manualAfter()
    const ended = Promise.withResolvers<undefined>()
    const upstream = await startUpstream((connection) => {
      connection.raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{')
      connection.socket.once('close', () => ended.resolve(undefined))
    })
    const asked = open(upstream.url, timers.after).ask()
    const outcome = expect(asked).rejects.toMatchObject({ message: 'it did not answer within 5 s' })
    await upstream.received(1)
    expect(timers.delays()).toEqual([5000])
    await timers.fire()
    await outcome
    await ended.promise
  })

  it('C8.7 that is closed while it is asked gives no token, and its connection ends', async () => {
    const ended = Promise.withResolvers<undefined>()
    const upstream = await startUpstream(({ socket }) => socket.once('close', () => ended.resolve(undefined)))
    const endpoint = open(upstream.url)
    const outcome = expect(endpoint.ask()).rejects.toMatchObject({ name: 'NoToken' })
    await upstream.received(1)
    await endpoint.close()
    await outcome
    await ended.promise
  })

  it('C8.7 is believed by its certificate only: of the authority that is configured, and of nobody else', async () => {
    const authority = makeAuthority(certificateFolder())
    const own = authority.issue('endpoint', 'IP:127.0.0.1')
    const tls = { cert: readFileSync(own.certificate), key: readFileSync(own.key) }
    const asked: (string | undefined)[] = []
    const server = createServer(tls, (request, response) => {
      asked.push(request.headers.authorization)
      response.setHeader('Content-Type', 'application/json')
      response.end('{"access_token":"a","token_type":"bearer"}')
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { oauth2: config } = oauth2(`https://127.0.0.1:${(server.address() as AddressInfo).port}/token`)
    const ask = async (ca: Buffer | undefined) => {
      const endpoint = new TokenEndpoint(config, ca)
      onTestFinished(() => endpoint.close())
      return endpoint.ask()
    }
    const other = readFileSync(makeAuthority(certificateFolder()).certificate)
    for (const ca of [undefined, other])
      await expect(ask(ca)).rejects.toThrow(/^it cannot be asked \([A-Z_]+\)$/)
    expect(asked).toEqual([])
    expect(await ask(readFileSync(authority.certificate))).toMatchObject({ accessToken: 'a' })
    expect(asked).toHaveLength(1)
  })

  it('C8.7 is asked over a connection of its own each time', async () => {
    const upstream = await startUpstream(grant('a'))
    const endpoint = open(upstream.url)
    await endpoint.ask()
    await endpoint.ask()
    expect(upstream.connections).toHaveLength(2)
  })
})
