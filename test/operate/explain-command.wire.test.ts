import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Explanation } from '../../src/base/contracts/calls/explanation.ts'
import { auditRecords } from '../support/audit-files.ts'
import { type Given, runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { movableClock } from '../support/movable-clock.ts'
import { bearer, send } from '../support/requests.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'
const ALICE = ['--client', 'acme-books', '--user', 'alice', '--target', 'b/ACME']

let gateway: StartedPostern
let token: string

beforeAll(async () => {
  gateway = await startPostern({
    clock: movableClock(Date.now()),
    change: (configuration) => ({
      ...configuration,
      load: {
        ...configuration.load,
        clients: { ...configuration.load.clients, rate: { requests: 100, per: 60_000, burst: 100 } },
      },
    }),
  })
  token = (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token
})
afterAll(() => gateway.close())

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

/** Of calls. What the service does by itself goes on meanwhile: it reads the feed and writes the trail. */
const metrics = async (): Promise<readonly string[]> => {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  return text
    .split('\n')
    .filter((line) => /^postern_/.test(line) && !/^postern_(audit|store|feed|process|data)_/.test(line))
}

describe('postern explain', () => {
  it('C14.2 exits with 0 for a call that would be let in', async () => {
    const { code, stdout, stderr } = await explain([...ALICE, 'GET', LIST])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain('let in\n')
    expect(stdout).toContain(
      'client acme-books, subject 45733adb-9b07-4d40-ae57-20cf9b802f51, target b/ACME (as claimed',
    )
  })

  it('C14.2 exits with 1 for a call that would be refused, and says why', async () => {
    const { code, stdout } = await explain([...ALICE, 'GET', '/api/1.0/b/GLOBEX/fund-data/fund-list'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^refused: 404 API_NOT_FOUND, reason unknown_place: /)
    expect(stdout).toMatch(/C4\.8 +FAILED/)
    expect(stdout).toContain(
      'The token is for another target: it is for b/ACME, and the call is about business GLOBEX.',
    )
  })

  it('C14.2 says at once why no token would be given', async () => {
    const { code, stdout } = await explain(['--client', 'nobody', '--user', 'alice', 'GET', LIST])
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^refused, reason invalid_client: No such token can be had \(invalid_client\): there is no such client\.\n/,
    )
  })

  it('C14.2 exits with 2 where it cannot be told', async () => {
    expect(await explain(['POST', '/connect/token'])).toMatchObject({ code: 2 })
    const gone = await explain(['GET', LIST], { env: { POSTERN_ADMIN_URL: 'http://127.0.0.1:1' } })
    expect(gone.code).toBe(2)
    expect(gone.stderr).toContain('is the service running')
    expect(await explain(['GET'])).toMatchObject({ code: 2 })
    expect(await explain(['--token', 'a', '--client', 'b', 'GET', LIST])).toMatchObject({ code: 2 })
    expect(await explain(['--token', '@/nowhere', 'GET', LIST])).toMatchObject({ code: 2 })
    const from = await explain(['--from', 'nowhere', 'GET', LIST])
    expect([from.code, from.stderr]).toEqual([2, expect.stringContaining('expected an IP address as `from`')])
  })

  it('C14.1 takes the token from standard input or a file, header lines and a body', async () => {
    const piped = await explain(['--json', '--token', '@-', 'GET', LIST], { input: `${token}\n` })
    expect(JSON.parse(piped.stdout) as Explanation).toMatchObject({
      outcome: 'let in',
      caller: { by: 'token' },
    })
    const file = configFiles({ token })('token')
    const posted = await explain([
      ...['--token', `@${file}`, '-H', 'Content-Type: application/json', '-d', '{"Colour":"red"}', '--json'],
      ...['--from', '192.0.2.1', 'POST', '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'],
    ])
    const explanation = JSON.parse(posted.stdout) as Explanation
    expect(explanation.refusal).toMatchObject({ clause: 'C4.11', reason: 'body_invalid', status: 400 })
    expect(explanation.checks[0]?.facts['clientAddress']).toBe('192.0.2.1')
  })

  it.each([
    ['{"Colour":"red"}', [], 'body_invalid'],
    ['[1', [], 'body_malformed'],
    ['<FundDetail><Colour>red</Colour></FundDetail>', [], 'body_invalid'],
    ['{"Colour":"red"}', ['-H', 'content-type: text/plain'], 'unsupported_media_type'],
    ['{"Colour":"red"}', ['-H', 'Content-Type:'], 'unsupported_media_type'],
    ['Colour=red', [], 'body_malformed'],
  ] as const)(
    'C14.2 reads the body %s with the header lines %j as a client would mean it',
    async (data, header, reason) => {
      const path = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
      const { stdout } = await explain(['--token', token, ...header, '-d', data, '--json', 'POST', path])
      expect((JSON.parse(stdout) as Explanation).refusal).toMatchObject({ clause: 'C4.11', reason })
    },
  )

  it('C12.3 explain.asked is recorded: who asked about which action, why, and the answer', async () => {
    await explain(['--token', token, '--reason', 'ticket 7', 'GET', `${LIST}?secret=1`])
    const records = auditRecords(gateway).filter(({ why }) => why === 'ticket 7')
    expect(records).toMatchObject([
      {
        ...{ event: 'explain.asked', outcome: 'success' },
        actor: { kind: 'operator', operator: 'admin', via: 'cli' },
        on: { business: 'ACME', area: 'fund-data', action: 'fund-list', method: 'GET', client: 'acme-books' },
        grant: { target: 'b/ACME' },
        change: { answer: 'let in' },
        values: { 'actor.address': '127.0.0.1' },
      },
    ])
    expect(JSON.stringify(records)).not.toContain('secret')
  })

  it('C14.2 escapes what would change the terminal', async () => {
    const { stdout } = await explain([...ALICE, '-H', 'Accept: image/\u009b31mpng', 'GET', LIST])
    expect(stdout).not.toContain('\u009b')
    expect(stdout).toContain('\\u009b31mpng')
  })

  it('C14.1 leaves no trace in metrics, in rates and in the log, and no token anywhere', async () => {
    await send(gateway, { target: LIST, headers: bearer(token) })
    const [before, lines] = [await metrics(), gateway.logLines().length]
    for (let count = 0; count < 20; count++) {
      await explain(['--token', token, 'GET', LIST])
      await explain(['--token', `${token.slice(0, -3)}AAA`, 'GET', LIST])
    }
    const principal = await gateway.worker!.explain({
      ...{
        method: 'GET',
        path: LIST,
        headers: [],
        body: Buffer.alloc(0),
        from: undefined,
        caller: undefined,
      },
      token,
    })
    expect(principal.checks.find(({ clause }) => clause === 'C4.5')?.facts['rate']).toMatchObject({
      burst: 100,
      left: 99,
    })
    expect(await metrics()).toEqual(before)
    // The audit trail has its own lines, by its own clock.
    expect(
      gateway
        .logLines()
        .slice(lines)
        .filter((line) => !line.includes('"event":"audit_')),
    ).toEqual([])
    expect(gateway.logLines().join('')).not.toContain(token.slice(-40))
    const files = readdirSync(gateway.data, { recursive: true, withFileTypes: true }).filter((each) =>
      each.isFile(),
    )
    expect(files.length).toBeGreaterThan(0)
    for (const { parentPath, name } of files)
      expect(readFileSync(join(parentPath, name)).includes(token.slice(-40)), name).toBe(false)
  })
})
