/** Bodies of the admin API that no honest client sends, and names that nobody can read (C11.5). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { administered } from '../support/administered.ts'

const THOUSANDS = 20_000
const deep = (open: string, close: string): string => `${open.repeat(THOUSANDS)}1${close.repeat(THOUSANDS)}`

const UNREADABLE: Readonly<Record<string, readonly [body: string | Buffer, problem: RegExp]>> = {
  'a key that stands twice': ['{"code":"ONE","code":"TWO","name":"x","funds":"any"}', /code/],
  'thousands of lists': [`{"code":"DEEP","name":${deep('[', ']')}}`, /deep/],
  'thousands of objects': [deep('{"name":', '}'), /deep/],
  'half a character': ['{"code":"HALF","name":"\\ud800","funds":"any"}', /./],
  'bytes that are no UTF-8': [Buffer.from('{"code":"BYTES","name":"\xff","funds":"any"}', 'latin1'), /UTF-8/],
}

/** A name, as a person can't read it on one line. */
const ODD_NAMES = [
  'two\nlines',
  'a\ttab',
  'nothing\0',
  '\u001b[31mred',
  'next\u0085',
  'ends\u2028',
  'x'.repeat(257),
]

async function rawly() {
  const { service, call } = await administered()
  const { adminUrl, data } = service
  const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  const send = async (method: string, path: string, body: string | Buffer, type = 'application/json') => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type }
    const response = await fetch(`${adminUrl}${path}`, { method, headers, body })
    return { status: response.status, body: (await response.json()) as { problems?: string[] } }
  }
  const names = async (path: string): Promise<string> => (await call('GET', path)).text
  return { send, call, names }
}

describe('C11.5.1 what is sent to the admin API', () => {
  it.each(Object.entries(UNREADABLE))(
    'C11.5.1 C7.6 refuses %s, and changes nothing',
    async (_what, [body, problem]) => {
      const { send, names } = await rawly()
      const before = await names('/businesses')
      const added = await send('POST', '/businesses', body)
      expect([added.status, added.body.problems?.[0]]).toEqual([400, expect.stringMatching(problem)])
      const edited = await send('PATCH', '/businesses/ACME', body, 'application/merge-patch+json')
      expect([edited.status, edited.body.problems?.[0]]).toEqual([400, expect.stringMatching(problem)])
      expect(await names('/businesses')).toBe(before)
    },
  )

  it('C11.5.1 refuses names that do not stand on one line, of businesses, funds, clients and roles', async () => {
    const { call, names } = await rawly()
    await call('POST', '/businesses', { body: { code: 'HOOLI', name: 'Hooli' } })
    const client = { kind: 'partner', grants: ['authorization_code'], scopes: ['openid'] }
    const paths = ['/businesses', '/businesses/HOOLI/funds', '/clients', '/roles']
    const before = await Promise.all(paths.map(names))
    for (const name of ODD_NAMES) {
      const answers = [
        await call('POST', '/businesses', { body: { code: 'ODD', name } }),
        await call('POST', '/businesses/HOOLI/funds', { body: { code: 'ODD', name } }),
        await call('POST', '/clients', { body: { id: 'odd', name, ...client } }),
        await call('POST', '/roles', { body: { name, scopes: ['fund.read'] } }),
      ]
      for (const { status, body } of answers) {
        expect(status).toBe(400)
        expect((body.problems as string[]).join()).toMatch(
          /name {2}expected a (text|name) of at most \d+ characters on one line/,
        )
      }
    }
    expect(await Promise.all(paths.map(names))).toEqual(before)
  })
})
