/** `postern token` and `postern try`, as somebody uses them who tries a service (C11.5.7). */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Explanation } from '../../src/base/contracts/calls/explanation.ts'
import { answerText, makeCall, plainAnswer, whyText } from '../../src/operate/explain/tried-call.ts'
import { recordsOf } from '../support/audit-files.ts'
import { runVerb } from '../support/command-line.ts'
import { bearer, send } from '../support/requests.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

const GET = { method: 'GET', path: '/x', headers: [], body: Buffer.alloc(0) }

let service: StartedPostern
beforeAll(async () => {
  service = await startPostern({ keeps: 'trail' })
})
afterAll(() => service.close())

const run = (args: readonly string[], input = '') =>
  runVerb(args, {
    input,
    env: {
      POSTERN_CONFIG: join(ROOT, 'config/demo.yaml'),
      POSTERN_ADMIN_PORT: String(service.adminPort),
      POSTERN_DATA: service.data,
    },
  })

describe('postern token', () => {
  it('C11.5.7 prints the token alone on standard output, and beside it what was granted', async () => {
    const { code, stdout, stderr } = await run(['token', '--user', 'alice', '--business', 'ACME'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(stderr).toMatch(
      /^client acme-books, subject 45733adb-\S+, for 900 s, scope openid .*target:b\/ACME\n$/,
    )
    const called = await send(service, { target: LIST, headers: bearer(stdout.trim()) })
    expect(called).toMatchObject({ status: 200 })
  })

  it('C11.5.7 takes a client, a fund and a scope, and tells what was not granted', async () => {
    const given = ['--client', 'ledgerline', '--business', 'GLOBEX', '--fund', 'GROWTH']
    const scope = 'fund.read fund.maintain offline_access'
    const { stdout } = await run(['token', '--user', 'bob', ...given, '--scope', scope, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ client: 'ledgerline', target: 'target:f/GLOBEX/GROWTH', fund: 'GROWTH' },
      dropped: ['fund.maintain', 'offline_access'],
    })
  })

  it.each([
    ['without a user', ['--business', 'ACME'], 'expected --user'],
    ['a fund of no business', ['--user', 'alice', '--fund', 'SUPER1'], 'expected --business beside --fund'],
  ])('C11.5.7, C11.6 refuses a command line %s', async (_case, args, message) => {
    const { code, stderr } = await run(['token', ...args])
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)])
  })

  it('C11.5.7 says why there is no such token', async () => {
    const { code, stdout, stderr } = await run(['token', '--user', 'bob', '--business', 'ACME'])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toBe(
      'postern: no such token can be had\n  invalid_scope  no client is granted such a token; acme-books: the user may do nothing at this business\n',
    )
  })
})

describe('postern try', () => {
  it('C11.5.7 makes the call for the business in its path, and shows the answer', async () => {
    const { code, stdout, stderr } = await run(['try', '--user', 'alice', 'GET', LIST])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^token: client acme-books, subject 45733adb-/)
    expect(stdout).toContain(`\nGET ${LIST}\n\n200 OK\n`)
    expect(stdout).toContain('\n        "Code": "SUPER1",\n')
    expect(stdout).toMatch(/\nwhy: let in: every check holds, and backend sample was asked\n$/)
  })

  it.each([
    ['/api/1.0/b/%47LOBEX/fund-data/fund-list', 'target:b/GLOBEX'],
    // The default of the client.
    ['/api/1.0/b/%zz/fund-data/fund-list', 'target:b/ACME'],
  ])('C11.5.7 reads the code of the business in a path that is encoded: %s', async (path, target) => {
    const { stdout, stderr } = await run(['try', '--user', 'alice', '--json', 'GET', path])
    expect(stderr).toBe('')
    expect(JSON.parse(stdout).granted.target).toBe(target)
  })

  it('C11.5.7 shows of a call that is refused which check failed, and with what', async () => {
    const { code, stdout } = await run(['try', '--user', 'bob', '--business', 'GLOBEX', 'GET', LIST])
    expect(code).toBe(1)
    expect(stdout).toContain('\n404 Not Found\n')
    expect(stdout).toContain('\nwhy: refused: 404 API_NOT_FOUND, reason unknown_place: ')
    expect(stdout).toMatch(/C4\.8 +FAILED/)
  })

  it('C11.5.7 sends the method, the headers and the body as they were given', async () => {
    const path = '/api/1.0/b/ACME/fund-data/fund-create'
    const body = JSON.stringify({ Code: 'TRIED1', Name: 'Tried' })
    const type = ['-H', 'Content-Type: application/json']
    const accept = ['-H', 'Accept: application/xml']
    const made = await run(['try', '--user', 'alice', ...type, ...accept, '-d', '@-', 'POST', path], body)
    expect(made.stdout).toContain('\n200 OK\n')
    expect(made.stdout).toMatch(/\nContent-Type: application\/xml/)
    const listed = await run(['try', '--user', 'alice', '--json', 'GET', LIST])
    expect(JSON.parse(listed.stdout)).toMatchObject({
      granted: { client: 'acme-books', target: 'target:b/ACME', expiresIn: 900 },
      call: { method: 'GET', path: LIST },
      answer: { status: 200, body: expect.stringContaining('TRIED1') },
      explanation: { outcome: 'let in' },
    })
  })

  it('C11.5.7 gives a body of JSON or XML its type, and names an action that was mistyped', async () => {
    const path = '/api/1.0/b/ACME/fund-data/fund-create'
    for (const [body, status] of [
      [' {"Code":"TYPED1","Name":"Typed"}', '200 OK'],
      ['<Fund><Code>TYPED2</Code><Name>Typed</Name></Fund>', '200 OK'],
      ['[1', '400 Bad Request'],
    ] as const)
      expect((await run(['try', '--user', 'alice', '-d', body, 'POST', path])).stdout).toContain(
        `\n${status}\n`,
      )
    const mistyped = await run(['try', '--user', 'alice', 'GET', LIST.replace('fund-list', 'fund-lists')])
    expect(mistyped.stdout).toMatch(/has none of this path at business level\. It has .*\bfund-list\b/)
  })

  it('C11.5.7 names the command that tells what went wrong behind a call that was let in', () => {
    const unread = {
      ...GET,
      status: 503,
      reason: '',
      headers: [['X-Request-Id', 'a1']],
      cut: undefined,
    } as const
    const letIn = { outcome: 'let in', action: { backend: 'service' } } as unknown as Explanation
    const commandFor = (words: readonly string[]): string => ['npx postern', ...words].join(' ')
    expect(whyText(letIn, unread, commandFor)).toBe(
      'why: let in: every check holds, and backend service was asked. The 503 came of that; what went wrong there: npx postern explain --request a1\n',
    )
  })

  it('C11.5.7 names it as it can be typed where try was, about the same service', async () => {
    const path = '/api/1.0/f/ACME/SUPER1/member-data/member-detail/8d9a6a1e-4c1c-4a53-9d1e-0d7c4b6d9c11'
    const { stdout } = await run([
      'try',
      '--user',
      'alice',
      '--business',
      'ACME',
      '--fund',
      'SUPER1',
      'GET',
      path,
    ])
    expect(stdout).toMatch(/went wrong there: \S.* explain --request \S+ --config \S+\/config\/demo\.yaml\n$/)
  })

  it('C11.5.7 shows the token to nobody, and leaves the records of the token and the question', async () => {
    const { stdout } = await run(['try', '--user', 'alice', '--json', '--reason', 'a look', 'GET', LIST])
    expect(stdout).not.toMatch(/eyJ[\w-]+\.[\w-]+\./)
    expect(recordsOf(service, 'token.issued').some(({ why }) => why === 'a look')).toBe(true)
    await expect.poll(() => recordsOf(service, 'explain.asked').length).toBeGreaterThan(0)
  })

  it('C11.5.7, C11.6 refuses a header line that is none, and a path that cannot be sent', async () => {
    const header = await run(['try', '--user', 'alice', '-H', 'nothing', 'GET', LIST])
    expect([header.code, header.stderr]).toEqual([
      2,
      expect.stringContaining('--header: expected "Name: value"'),
    ])
    const path = await run(['try', '--user', 'alice', 'GET', `${LIST} x`])
    expect([path.code, path.stderr]).toEqual([2, expect.stringContaining('the call cannot be sent')])
    const bare = await run(['try', '--user', 'alice', 'GET', LIST.slice(1)])
    expect([bare.code, bare.stderr]).toEqual([2, expect.stringContaining('a path that begins with "/"')])
  })
})

async function answering(answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('the answer to a call that is tried', () => {
  it('C11.5.7 is cut behind one MiB', async () => {
    const url = await answering((_request, response) => response.end('x'.repeat(3_000_000)))
    const { body, cut } = await makeCall(url, GET)
    expect([body.length, cut]).toEqual([1_048_576, 'only its first MiB is shown'])
  })

  it('C11.5.7 is shown as far as it came, where the connection breaks', async () => {
    const url = await answering((_request, response) => {
      response.writeHead(200, { 'Content-Length': '100' })
      response.write('half', () => response.destroy())
    })
    const answer = await makeCall(url, GET)
    expect(answerText(answer)).toMatch(/\nhalf\n\(the connection broke \(ECONNRESET\)\)\n$/)
  })

  it('C11.5.7 cannot change the terminal, and is counted where it is no text', async () => {
    const url = await answering(({ url: path }, response) => {
      response.end(path === '/x' ? 'a\tb\n\u001b[2Jc' : Buffer.from([0xff, 0xfe, 0x00]))
    })
    expect(answerText(await makeCall(url, GET))).toMatch(/\na\tb\n\\u001b\[2Jc\n$/)
    const binary = await makeCall(url, { ...GET, path: '/binary' })
    expect(answerText(binary)).toMatch(/\n\(3 bytes that are no text\)\n$/)
    expect(plainAnswer(binary)).toMatchObject({ bodyBase64: '//4A' })
  })

  it('C11.5.7 is missed in words where nobody answers', async () => {
    const url = await answering((request) => request.socket.destroy())
    await expect(makeCall(url, GET)).rejects.toThrow(`there is no answer from ${url} (ECONNRESET)`)
  })
})
