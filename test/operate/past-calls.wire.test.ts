import { join } from 'node:path'
import { revoke } from '../../src/operate/revoke/revoke.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditRecords } from '../support/audit-files.ts'
import { type Given, runVerb } from '../support/command-line.ts'
import { movableClock, type MovableClock } from '../support/movable-clock.ts'
import { bearer } from '../support/requests.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'

let gateway: StartedPostern
let clock: MovableClock

beforeAll(async () => {
  clock = movableClock(Date.now())
  gateway = await startPostern({ keeps: 'trail', clock })
})
afterAll(() => gateway.close())

/** The id of the answer to a call. */
async function call(
  path: string,
  { headers = {}, ...init }: RequestInit & { headers?: Record<string, string> } = {},
  { baseUrl }: { readonly baseUrl: string } = gateway,
): Promise<string> {
  const response = await fetch(`${baseUrl}${path}`, { headers, ...init })
  await response.arrayBuffer()
  return response.headers.get('x-request-id') ?? ''
}

const explain = (args: readonly string[], given: Given = {}) =>
  runVerb(['explain', ...args], {
    ...given,
    env: {
      POSTERN_CONFIG: join(ROOT, 'config/demo.yaml'),
      POSTERN_ADMIN_PORT: String(gateway.adminPort),
      POSTERN_DATA: gateway.data,
      ...given.env,
    },
  })

const token = async (scope: string): Promise<string> => (await issueToken(gateway, { scope })).access_token

async function ask(id: string) {
  const { code, stdout, stderr } = await explain(['--request', id, '--json'])
  expect(stderr).toBe('')
  return { code, ...JSON.parse(stdout) }
}

const lineOf = (id: string): string =>
  gateway
    .logLines()
    .flatMap((text) => text.split('\n'))
    .find((line) => line.includes(`"requestId":"${id}"`)) ?? ''

describe('postern explain --request', () => {
  it('C14.4 C8.2 has the trace and the version of the action, as the log has', async () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c'
    const traceparent = `00-${traceId}-b7ad6b7169203331-01`
    const scope = 'business.fund.list target:b/ACME'
    const allowed = await call(LIST, { headers: { ...bearer(await token(scope)), traceparent } })
    const refused = await call(LIST, { headers: { traceparent } })
    const broken = await call(LIST, { headers: { traceparent: 'nonsense' } })
    expect(JSON.parse(lineOf(allowed))).toMatchObject({ traceId, version: 1 })
    expect(JSON.parse(lineOf(refused))).toMatchObject({ traceId, reason: expect.any(String) as string })
    for (const id of [refused, broken]) expect(JSON.parse(lineOf(id))).not.toHaveProperty('version')
    expect(JSON.parse(lineOf(broken))).not.toHaveProperty('traceId')
    expect((await ask(allowed)).then).toMatchObject({ traceId, version: 1 })
    expect((await ask(refused)).then).toMatchObject({ traceId })
    const fromLog = await explain(['--log', '-'], { input: lineOf(allowed) })
    expect(fromLog.stdout).toContain(`  version 1\n  trace ${traceId}\n`)
  })

  it('C14.4 tells what was decided then, what would be now, and that it is the same', async () => {
    const headers = { ...bearer(await token('fund.read target:b/ACME')), accept: 'application/xml' }
    const id = await call(`${CREATE}?member=secret-1`, { method: 'POST', headers })
    const { code, stdout } = await explain(['--request', id])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^then: 401 insufficient_scope, at \d{4}-\d\d-\d\dT/)
    expect(stdout).toContain(`  POST ${CREATE}\n`)
    expect(stdout).toContain('client acme-books, subject 45733adb-9b07-4d40-ae57-20cf9b802f51')
    expect(stdout).toContain('target:b/ACME, scope "fund.read target:b/ACME"')
    expect(stdout).toContain('  Accept: application/xml\n')
    expect(stdout).toContain('difference: the same. It would be refused for the same reason.')
    expect(stdout).toContain('With business.fund.create it would be enough.')
    expect(stdout).not.toMatch(/secret|eyJ/)
  })

  it('C14.4 tells of a call that was let in, and of one whose token is revoked or expires meanwhile', async () => {
    const id = await call(LIST, { headers: bearer(await token('fund.read target:b/ACME')) })
    expect(await ask(id)).toMatchObject({
      code: 0,
      difference: { then: 'let in', now: 'let in', same: true },
    })
    await revoke(
      gateway.context,
      { client: 'acme-books', subject: '45733adb-9b07-4d40-ae57-20cf9b802f51' },
      { preview: false, consents: false, force: false },
      { operator: 'admin', by: 'olga', reason: 'left', via: 'test' },
    )
    const revoked = await ask(id)
    expect(revoked).toMatchObject({
      code: 1,
      difference: { then: 'let in', now: 'revoked_token', same: false },
    })
    expect(revoked.difference.words).toContain('It was let in, and would be refused now.')
    expect(revoked.difference.words).toMatch(/It was revoked with everything of .*left/)
    clock.advance(1)
    const later = await call(LIST, { headers: bearer(await token('fund.read target:b/ACME')) })
    clock.advance(901_000)
    expect((await ask(later)).difference.words).toContain('It expired')
  })

  it('C14.4 tells that a call which maintenance refused would be let in now', async () => {
    const headers = bearer(await token('fund.read target:b/ACME'))
    await gateway.context.maintenance.set(
      {
        ...{ scope: { kind: 'business', name: 'ACME' }, from: undefined, until: undefined },
        ...{ message: undefined, retryAfter: undefined, addresses: [], clients: [] },
      } as never,
      { via: 'test' },
    )
    const id = await call(LIST, { headers })
    const closed = await ask(id)
    expect(closed.difference).toMatchObject({
      then: 'place_maintenance',
      now: 'place_maintenance',
      same: true,
    })
    await gateway.context.maintenance.end(gateway.context.maintenance.list(), { via: 'test' })
    const open = await ask(id)
    expect(open).toMatchObject({ code: 0, difference: { now: 'let in', same: false } })
    expect(open.difference.words).toMatch(/^It would be let in now\./)
  })

  it.each([
    ['no token', {}, 'no_credentials', 'no_credentials', true],
    ['another scheme', { authorization: 'Basic YTpi' }, 'other_scheme', 'unknown', undefined],
    ['a token that is none', { authorization: 'Bearer rubbish' }, 'invalid_token', 'unknown', undefined],
  ])('C14.4 says what it cannot know of a call with %s', async (_what, headers, then, now, same) => {
    const { difference, then: told } = await ask(await call(LIST, { headers }))
    expect(difference).toMatchObject({ then, now })
    expect([difference.same, told.caller]).toEqual([same, undefined])
  })

  it('C14.4 says of a body and of a target that they are not kept', async () => {
    const headers = {
      ...bearer(await token('business.fund.create target:b/ACME')),
      'content-type': 'application/json',
    }
    const bodied = await ask(await call(CREATE, { method: 'POST', headers, body: '{"Name":"x"}' }))
    expect(bodied.difference).toEqual({
      ...{ then: 'body_invalid', now: 'unknown' },
      words: 'Its body is not kept, and it was refused for that.',
    })
    const unread = await ask(await call('/api/1.0/b/ACME/a%2fb'))
    expect(unread.then).toMatchObject({ status: 400, reason: 'bad_target' })
    expect(unread.now).toBeUndefined()
    expect(unread.difference.now).toBe('unknown')
  })

  it('C14.4 says where to look for a call that is not kept', async () => {
    const { code, stderr } = await explain(['--request', '00000000000000000000000000000000'])
    expect(code).toBe(2)
    expect(stderr).toContain('no process keeps this call')
    expect(stderr).toContain('the log has a line of every call')
  })

  it('C14.4 leaves no trace: asking neither counts as a call nor takes the place of one', async () => {
    const id = await call(LIST)
    const before = gateway.log().filter(({ event }) => event === 'call').length
    await ask(id)
    await ask(id)
    expect(gateway.log().filter(({ event }) => event === 'call')).toHaveLength(before)
  })

  it('C12.3 each question leaves explain.asked, with the request id and without the path', async () => {
    const id = await call(`${LIST}?member=secret-1`)
    await ask(id)
    const [record, ...more] = auditRecords(gateway).filter(
      ({ event, on }) => event === 'explain.asked' && (on as { id?: string }).id === id,
    )
    expect(more).toEqual([])
    expect(record).toMatchObject({
      on: { kind: 'call', id, method: 'GET' },
      change: { then: 'no_credentials', now: 'no_credentials' },
    })
    expect(JSON.stringify(record)).not.toMatch(/secret|fund-list/)
  })

  it.each([
    [['--request', 'x', 'GET', LIST], 'METHOD and PATH are not for these'],
    [['--request', 'x', '--token', 'y'], '--token is not for these'],
    [['--request', 'x', '--log', '-'], 'expected --request or --log: not both'],
    [['--log', 'file'], '--log: expected -, got "file"'],
    [['--log', '-'], 'expected one line of the log on standard input, got 0'],
  ])('C14.4 refuses a command line that says two things: %j', async (args, told) => {
    const { code, stderr } = await explain(args)
    expect(code).toBe(2)
    expect(stderr).toContain(told)
  })
})

describe('postern explain --log -', () => {
  it('C14.4 reads a line of the log: the decision of then, and the one of now', async () => {
    const id = await call(CREATE, { method: 'POST', headers: bearer(await token('fund.read target:b/ACME')) })
    const { code, stdout } = await explain(['--log', '-'], { input: `${lineOf(id)}\n` })
    expect(code).toBe(1)
    expect(stdout).toMatch(/^then: 401 insufficient_scope, at /)
    expect(stdout).toContain('difference: the same.')
  })

  it('C14.4 takes the token that the client would be given now, where the line tells no scope', async () => {
    const id = await call(LIST, { headers: bearer(await token('fund.read target:b/ACME')) })
    expect(lineOf(id)).not.toContain('"scope"')
    const { code, stdout } = await explain(['--log', '-', '--json'], { input: lineOf(id) })
    expect(code).toBe(0)
    const { then, now, difference } = JSON.parse(stdout)
    expect(then.caller.scope).toBeUndefined()
    expect(now.caller.by).toBe('claimed')
    expect(difference.same).toBe(true)
  })

  it.each([
    ['rubbish', 'line  it is no JSON object'],
    ['{"event":"started"}', 'line  it is of another event'],
  ])('C14.4 refuses a line that is none of a call: %s', async (line, told) => {
    const { code, stderr } = await explain(['--log', '-'], { input: line })
    expect(code).toBe(2)
    expect(stderr).toContain(told)
  })
})
