import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { walkToCode } from '../support/code-walk.ts'
import { sendRaw, type RawResponse } from '../support/raw-http.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/** The examples of src/protocol/clients.md, sent as they stand there; `…` in an answer stands for anything. */

const PAGE = readFileSync(new URL('../../src/protocol/clients.md', import.meta.url), 'utf8')
const blocks = [...PAGE.matchAll(/^```(http|text)\n(.*?)\n```$/gms)].map((match) => match[2] ?? '')

let postern: StartedPostern
/** What the shortened secrets of the page stand for, as they are given out. */
const secrets = new Map<string, string>()

beforeAll(async () => {
  postern = await startPostern({ keeps: 'nothing' })
})
afterAll(() => postern.close())

const filled = (text: string): string => {
  const ours = text.replaceAll('127.0.0.1:8080', `127.0.0.1:${postern.port}`)
  return [...secrets].reduce((result, [shown, value]) => result.replaceAll(shown, value), ours)
}

const send = (block: string): Promise<RawResponse> => {
  const [head = '', body] = filled(block).split('\n\n')
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  const lines = [...head.split('\n'), ...length, 'Connection: close', '', body ?? '']
  return sendRaw(postern.port, lines.join('\r\n'))
}

/** Of a secret the page shows how it begins. */
const BEGINNING = /(?<=")[\w-]+(?=…")/g

const pattern = (shown: string): RegExp => {
  const parts = shown.replaceAll(BEGINNING, '').split('…')
  return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join('.*?')}$`, 's')
}

function expectShown(answer: RawResponse, block: string): void {
  const [head = '', body = ''] = block.replaceAll('127.0.0.1:8080', `127.0.0.1:${postern.port}`).split('\n\n')
  const [status = '', ...headers] = head.split('\n')
  expect(`HTTP/${answer.version} ${answer.status} ${answer.reason}`).toBe(status)
  for (const line of headers.filter((each) => !each.startsWith('X-Request-Id'))) {
    const [, name = '', value = ''] = /^([^:]+): (.*)$/.exec(line) ?? []
    expect(answer.headers[name.toLowerCase()]).toBe(value)
  }
  expect(answer.body).toMatch(pattern(body))
}

/** Sends the request block that begins so, and compares with the answer block behind it, if there is one. */
async function example(beginning: string): Promise<RawResponse> {
  const at = blocks.findIndex((block) => block.startsWith(beginning) || block.includes(`\n${beginning}`))
  expect(at).toBeGreaterThanOrEqual(0)
  const answer = await send(blocks[at] ?? '')
  const next = blocks[at + 1] ?? ''
  if (next.startsWith('HTTP/')) expectShown(answer, next)
  return answer
}

describe('the examples of src/protocol/clients.md', () => {
  it('C6.1.3 C6.1.7 C2.2 get a token, refresh it, call, and send XML', async () => {
    const { body } = await example('grant_type=password')
    const tokens = JSON.parse(body) as Record<string, string>
    secrets.set('eyJ…', tokens['access_token'] ?? '').set('v2.…', tokens['refresh_token'] ?? '')
    expect((await example('grant_type=refresh_token')).status).toBe(200)
    await example('GET /api/1.0/f/')
    await example('POST /api/1.0/f/')
  })

  it('C6.1.6 C6.2.1 walk the code flow', async () => {
    const request = new URL(
      (blocks.find((block) => block.includes('/authorize?')) ?? '').replaceAll(/\n\s*/g, ''),
    )
    const { answer, code } = await walkToCode({
      authUrl: postern.authUrl,
      params: Object.fromEntries(request.searchParams),
      username: 'alice',
      business: 'ACME',
    })
    expect([...answer.keys()]).toEqual(['code', 'state', 'iss'])
    secrets.set('GvK2…', code)
    expect((await example('grant_type=authorization_code')).status).toBe(200)
  })

  it('C2.1 C4.13 tell an error', () => example('GET /api/1.0/b/'))
})
