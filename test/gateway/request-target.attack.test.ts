import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  attackMemory,
  attackUpstream,
  bytesOf,
  RawCaller,
  type AttackedMemory,
  type AttackedUpstream,
  type RawRequest,
} from '../support/attacked.ts'
import { HOSTILE } from '../support/hostile-segments.ts'
import { sendRaw } from '../support/raw-http.ts'

/** T1: what the request target is made to say. ACME is allowed, GLOBEX is the prize. */

let memory: AttackedMemory
let http: AttackedUpstream

beforeAll(async () => {
  memory = await attackMemory()
  http = await attackUpstream()
})
afterAll(async () => {
  await memory.close()
  await http.close()
})
beforeEach(() => {
  memory.forget()
  http.forget()
})

const both = () => [memory, http]
const PRIZE = 'b/GLOBEX/fund-data/fund-list'
const BASE = '/api/1.0/b/ACME/fund-data'
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'

const asTraversal = (hostile: string): string => `${BASE}/${hostile}/${hostile}/${hostile}/${PRIZE}`
const asParameter = (hostile: string): string => `${BASE}/echo/x${hostile}y`
const asWhole = (hostile: string): string => `${BASE}/echo/${hostile}`
const asCode = (hostile: string): string => `/api/1.0/b/ACME${hostile}/fund-data/fund-list`
const isDots = (hostile: string): boolean => /^(?:\.|%2e)+$/i.test(hostile)

async function expectRefused(request: RawRequest): Promise<void> {
  for (const attacked of both()) {
    const { authorization } = attacked
    const answer = await sendRaw(
      attacked.port,
      bytesOf({ ...request, lines: authorization + (request.lines ?? '') }),
    )
    const shown = { target: request.target, status: answer.status, reached: attacked.reached() }
    expect(shown).toEqual({ target: request.target, status: 400, reached: [] })
    expect(JSON.parse(answer.body)).toMatchObject({ Errors: [{ Code: 'API_BAD_REQUEST' }], Data: {} })
  }
}

describe('T1.1 a raw backslash', () => {
  it.each([
    `${BASE}/a\\..\\..\\GLOBEX\\x`,
    `${BASE}\\..\\..\\GLOBEX\\fund-data\\fund-list`,
    `/api/1.0/b/ACME/..\\GLOBEX/fund-data/fund-list`,
    `/api\\1.0\\b\\GLOBEX\\fund-data\\fund-list`,
    `${BASE}/fund-list\\`,
    `\\api/1.0/${PRIZE}`,
  ])('C3.4 is refused in %s, on calls and on upgrades', async (target) => {
    await expectRefused({ target })
    await expectRefused({ target, lines: UPGRADE })
  })
})

describe('T1.2 encoded separators and dots', () => {
  it.each(HOSTILE)('C3.4 refuses %s on the way to another business', async (hostile) => {
    await expectRefused({ target: asTraversal(hostile) })
    await expectRefused({ target: asTraversal(hostile), lines: UPGRADE })
  })

  it.each(HOSTILE.filter((hostile) => !isDots(hostile)))(
    'C3.4 refuses %s within a path parameter or a code',
    async (hostile) => {
      await expectRefused({ target: asParameter(hostile) })
      await expectRefused({ target: asCode(hostile) })
    },
  )

  it.each(HOSTILE)('C3.4 refuses %s as a whole path parameter', async (hostile) => {
    await expectRefused({ target: asWhole(hostile) })
    await expectRefused({ target: `${asWhole(hostile)}?q=1` })
  })

  it.each([
    '/connect/..%2ftoken',
    '/connect\\token',
    '/connect/%2e%2e/api',
    '/.well-known/a;b',
    '/connect//token',
  ])('C3.4 refuses %s at the identity paths too', async (target) => {
    for (const { port } of both()) {
      const { status } = await sendRaw(port, bytesOf({ method: 'POST', target }))
      expect(status).toBe(400)
    }
  })
})

describe('T1.3 empty segments, fragments, other forms of target', () => {
  it.each([
    `//api/1.0/b/ACME/fund-data/fund-list`,
    `///api/1.0/b/ACME/fund-data/fund-list`,
    `//127.0.0.1/api/1.0/b/ACME/fund-data/fund-list`,
    `/api//1.0/b/ACME/fund-data/fund-list`,
    `/api/1.0/b//fund-data/fund-list`,
    `/api/1.0/b/ACME//fund-list`,
    `${BASE}/fund-list/`,
    `${BASE}/fund-list//`,
    `${BASE}/fund-list/?q`,
    `${BASE}/fund-list#`,
    `${BASE}/fund-list#/../../${PRIZE}`,
    `${BASE}/fund-list?q#x`,
    `api/1.0/b/ACME/fund-data/fund-list`,
    `?/api/1.0/b/ACME/fund-data/fund-list`,
    `ftp://127.0.0.1${BASE}/fund-list`,
    `http:${BASE}/fund-list`,
    `http:/${BASE}/fund-list`,
    `https://${BASE}/fund-list`,
    `*/api`,
  ])('C3.4 refuses %s', async (target) => {
    await expectRefused({ target })
  })

  it('C3.6 refuses the absolute form with an authority that is not ours', async () => {
    const { port } = http
    const authorities = [
      'evil.example',
      'localhost',
      '127.0.0.1',
      '127.0.0.1:1',
      `127.0.0.1:${port}@evil.example`,
      `user@127.0.0.1:${port}`,
      `127.0.0.1:${port}:80`,
      `127.0.0.1..:${port}`,
      `127.1:${port}`,
      `2130706433:${port}`,
      `[::ffff:127.0.0.1]:${port}`,
      `127.0.0.1%3a${port}`,
      '',
    ]
    for (const authority of authorities)
      for (const scheme of ['http', 'https', 'HTTP'])
        await expectRefused({ target: `${scheme}://${authority}${BASE}/fund-list` })
  })

  it('C3.6 takes the absolute form with our authority for the path in it, whatever Host says', async () => {
    const { port, authorization, reached } = http
    for (const origin of [
      `http://127.0.0.1:${port}`,
      `HTTP://127.0.0.1.:${port}`,
      `https://127.0.0.1:${port}`,
    ]) {
      const lines = `Host: evil.example\r\n${authorization}`
      const { status } = await sendRaw(port, `GET ${origin}${BASE}/fund-list HTTP/1.1\r\n${lines}\r\n`)
      expect(status).toBe(200)
    }
    expect(reached()).toEqual(Array(3).fill(`GET ${BASE}/fund-list`))
    expect(http.received().map(({ headers }) => headers['x-forwarded-host'])).toEqual(
      Array(3).fill([`127.0.0.1:${port}`]),
    )
  })

  it('C3.6 sends nobody anywhere by authority form, asterisk form or Host', async () => {
    for (const attacked of both()) {
      const { port, authorization } = attacked
      const ask = async (request: RawRequest) =>
        (await sendRaw(port, bytesOf({ ...request, lines: authorization }))).status
      expect(await ask({ method: 'CONNECT', target: 'evil.example:443' })).toBe(400)
      expect(await ask({ method: 'CONNECT', target: `${BASE}/fund-list` })).toBe(400)
      expect(await ask({ target: 'evil.example:80' })).toBe(400)
      expect(await ask({ method: 'OPTIONS', target: '*' })).toBe(404)
      expect(await ask({ target: '*' })).toBe(404)
      expect(attacked.reached()).toEqual([])
    }
  })

  it('C3.6 lets Host choose nothing: no door, no upstream', async () => {
    const { port, authorization, upstream } = http
    for (const host of ['evil.example', 'LOCALHOST', 'a.', '[::1]:9', `127.0.0.1:${upstream.port}`]) {
      const { status } = await sendRaw(
        port,
        `GET ${BASE}/fund-list HTTP/1.1\r\nHost: ${host}\r\n${authorization}\r\n`,
      )
      expect([host, status]).toEqual([host, 200])
    }
    expect(new Set(http.received().flatMap(({ headers }) => headers['host']))).toEqual(
      new Set([`127.0.0.1:${upstream.port}`]),
    )
  })
})

describe('T1.4 the query', () => {
  const queries = [
    '?x=/api/1.0/b/GLOBEX',
    '?/../../../b/GLOBEX/fund-data/fund-list',
    '?/..%2f..%2fGLOBEX',
    '?business=GLOBEX&BusinessCode=GLOBEX&x-postern-business=GLOBEX',
    '?access_token=x&_method=DELETE',
    '??',
    '?;%00%zz\\..\\',
    '?a=1&a=2&a[]=3',
  ]

  it.each(queries)('C3.4 changes nothing and arrives byte for byte: %s', async (query) => {
    for (const attacked of both()) {
      const { port, authorization, reached } = attacked
      const ask = (target: string) => sendRaw(port, bytesOf({ target, lines: authorization }))
      expect((await ask(`${BASE}/fund-list${query}`)).status).toBe(200)
      expect((await ask(`/api/1.0/${PRIZE}${query}`)).status).toBe(404)
      expect(reached()).toEqual([`GET ${BASE}/fund-list${query}`])
    }
    expect(http.received()[0]?.headers['x-postern-business']).toEqual(['ACME'])
  })

  it('C4.14 holds no token that counts', async () => {
    const token = http.authorization.trim().split(' ').at(-1) ?? ''
    const target = `${BASE}/fund-list?access_token=${token}`
    const answer = await sendRaw(http.port, bytesOf({ target }))
    expect(answer.status).toBe(401)
    expect(http.reached()).toEqual([])
  })
})

describe('T1.5 legal names', () => {
  const plain = [
    'a..b',
    '...',
    '....',
    '..a',
    'a..',
    '.a',
    '-',
    '~',
    '_',
    "'",
    '()',
    '*',
    '!',
    '@',
    ':',
    '$&+,=',
  ]
  const escaped = [
    '%20',
    '%2B',
    '%25',
    '%C3%A9',
    '%E2%82%AC',
    '%F0%9F%92%B6',
    '%2C',
    '%3D',
    '%22',
    '%3C%3E',
    '%7B%7D',
  ]
  const odd = ['"', '<', '>', '[', ']', '^', '`', '{', '|', '}']
  const pieces = [...plain, ...escaped, ...odd]
  const names = Array.from({ length: 200 }, (_, at) => {
    const [first, second] = [pieces[at % pieces.length], pieces[(at * 7 + 3) % pieces.length]]
    return at < pieces.length ? `${first}` : `${first}n${at}${second}`
  })

  it('C3.4 serves 200 odd ones, which arrive upstream byte for byte', async () => {
    const caller = new RawCaller(http.port)
    const sent = names.map((name) => `${BASE}/echo/${name}`)
    for (const target of sent) {
      const { status } = await caller.call(bytesOf({ target, lines: http.authorization }))
      expect([target, status]).toEqual([target, 200])
    }
    caller.close()
    expect(new Set(names).size).toBe(200)
    expect(http.reached()).toEqual(sent.map((target) => `GET ${target}`))
  })
})

describe('T1.6 the upstream’s URL', () => {
  it('C3.4 is made of what was judged: unreserved characters decoded, other escapes in upper case', async () => {
    const { port, authorization, reached } = http
    const sent = `/%61pi/1%2E0/b/%41CME/fund%2ddata/echo/%7e%2b%c3%a9%5f?%41=%2e`
    const answer = await sendRaw(port, bytesOf({ target: sent, lines: authorization }))
    expect(answer.status).toBe(200)
    expect(reached()).toEqual([`GET ${BASE}/echo/~%2B%C3%A9_?%41=%2e`])
  })

  it('C3.4 is never another call’s, however alike their parts are', async () => {
    const targets = [
      'a?b',
      'a%3Fb',
      'a',
      'a?',
      'a??b',
      'ab',
      'a?b=http://x/',
      '"a"',
      'a"',
      '{"a":1}',
      'a,b',
      'a%2Cb',
    ]
    const caller = new RawCaller(http.port)
    const sent = [...targets, ...targets.toReversed()].map((name) => `${BASE}/echo/${name}`)
    for (const target of sent) await caller.call(bytesOf({ target, lines: http.authorization }))
    caller.close()
    expect(http.reached()).toEqual(sent.map((target) => `GET ${target}`))
  })

  it('C3.5 compares codes exactly: another case, an escape or a look-alike is another business', async () => {
    for (const code of [
      'acme',
      'Acme',
      'ACME%20',
      '%20ACME',
      'ACME.',
      'ACME%C2%A0',
      '%D0%90CME',
      '%EF%BC%A1CME',
    ]) {
      for (const attacked of both()) {
        const target = `/api/1.0/b/${code}/fund-data/fund-list`
        const { status } = await sendRaw(attacked.port, bytesOf({ target, lines: attacked.authorization }))
        expect([code, status, attacked.reached()]).toEqual([code, 404, []])
      }
    }
  })
})
