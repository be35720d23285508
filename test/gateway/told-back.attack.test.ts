import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sendRaw } from '../support/raw-http.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, basic, issueToken } from '../support/tokens.ts'

/** What a client sent by mistake is told back to nobody: `password=hunter&TAIL` makes TAIL the name of a field. */

let postern: StartedPostern
let token: string
const TAIL = 'hunter2tail'

beforeAll(async () => {
  postern = await startPostern({
    keeps: 'nothing',
    change: (loaded) => ({
      ...loaded,
      actions: [
        ...loaded.actions,
        {
          level: 'business',
          area: 'fund-data',
          action: 'typed',
          methods: {
            POST: {
              ...{ scopes: { any: ['fund.read'] }, versions: [1], items: {} },
              body: {
                required: true,
                schema: {
                  type: 'object',
                  properties: { Note: { type: 'string' } },
                  additionalProperties: false,
                },
              },
            },
          },
        },
      ],
    }),
  })
  token = (await issueToken(postern, { scope: ALL_AT_ACME })).access_token
})
afterAll(() => postern.close())

/** Sends a form as its bytes are, since clients escape what they are given; answers what came back, whole. */
async function send(path: string, body: string, lines = ''): Promise<string> {
  const head =
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n` +
    `Content-Length: ${Buffer.byteLength(body)}\r\n${lines}\r\n`
  const { status, rawHeaders, body: answer } = await sendRaw(postern.port, head + body)
  return `${status} ${rawHeaders.map((line) => line.join(': ')).join('\n')}\n${answer}`
}

/** The lines of the log about the calls of `work`. */
async function logged(work: () => Promise<unknown>): Promise<string> {
  const before = postern.logLines().length
  await work()
  const lines = postern.logLines().slice(before).join('')
  expect(lines).not.toBe('')
  return lines
}

const AUTHORIZED = `Authorization: ${basic('acme-books')}\r\n`
const MISTAKES: readonly (readonly [string, string])[] = [
  ['a bad escape in the value', `${TAIL}=%zz`],
  ['no UTF-8 in the value', `${TAIL}=%ff`],
  ['a bad escape in the name', `${TAIL}%zz`],
  ['the same twice', `${TAIL}=1&${TAIL}=2`],
  ['upper and lower case', `${TAIL.toUpperCase()}=1&${TAIL.toUpperCase()}=2`],
]

describe('C2.6 names of unknown fields', () => {
  it.each(MISTAKES)('C6.1.4 stand neither in error_description nor in the log (%s)', async (_, tail) => {
    for (const [path, form] of [
      ['/connect/token', 'grant_type=password&username=alice&password=hunter&'],
      ['/connect/revocation', 'token=hunter&'],
      ['/connect/introspect', 'token=hunter&'],
      ['/connect/login', 'username=alice&password=hunter&'],
      ['/connect/endsession', 'state=hunter&'],
      ['/connect/authorize', 'client_id=ledgerline&redirect_uri=http%3A%2F%2F127.0.0.1%3A8090%2Fcallback&'],
    ] as const) {
      let answer = ''
      const lines = await logged(async () => (answer = await send(path, form + tail, AUTHORIZED)))
      expect([path, answer.toLowerCase()]).toEqual([path, expect.not.stringContaining(TAIL)])
      expect([path, lines.toLowerCase()]).toEqual([path, expect.not.stringContaining(TAIL)])
    }
  })

  it('C6.0 a known parameter is still named', async () => {
    const form = 'grant_type=password&scope=a&scope=b'
    expect(await send('/connect/token', form, AUTHORIZED)).toContain('The parameter scope was sent twice.')
    expect(await send('/connect/token', 'grant_type=%zz', AUTHORIZED)).toContain('Field grant_type has a %')
  })

  it.each([
    ['a form', 'application/x-www-form-urlencoded', `Note=hunter&${TAIL}=1`, 'is not known here'],
    ['a form, twice', 'application/x-www-form-urlencoded', `${TAIL}=1&${TAIL}=2`, 'was sent twice'],
    ['JSON', 'application/json', `{"${TAIL}": 1}`, 'is not known here'],
    ['JSON, twice', 'application/json', `{"${TAIL}": 1, "${TAIL}": 2}`, 'is there twice'],
    ['XML', 'application/xml', `<a><${TAIL}>x</${TAIL}></a>`, 'is not known here'],
  ])('C4.11 in %s are told to the client of an action, and not to the log', async (_, type, body, why) => {
    let answer = ''
    const lines = await logged(async () => {
      const head = { Authorization: `Bearer ${token}`, 'Content-Type': type, Accept: 'application/json' }
      const url = `${postern.baseUrl}/api/1.0/b/ACME/fund-data/typed`
      answer = await (await fetch(url, { method: 'POST', headers: head, body })).text()
    })
    expect(answer).toContain(TAIL)
    expect(answer).toContain(why)
    expect(lines).not.toContain(TAIL)
  })

  it('C4.11 an ampersand that XML did not escape tells no tail to the log', async () => {
    const lines = await logged(async () => {
      const head = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/xml' }
      const url = `${postern.baseUrl}/api/1.0/b/ACME/fund-data/typed`
      await fetch(url, { method: 'POST', headers: head, body: `<a><Note>hunter&${TAIL};</Note></a>` })
    })
    expect(lines).not.toContain(TAIL)
    expect(lines).toContain('XML line 1')
  })
})
