/** What the trail of a real service answers, by the command line and the admin API. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { AuditRow } from '../../../src/base/contracts/records/audit-query.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { bearer, send } from '../../support/requests.ts'
import { shared } from '../../support/shared.ts'
import { DEMO } from '../../support/spawn-postern.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

const DETAIL = '/api/1.0/f/ACME/SUPER1/fund-data/fund-detail'
/** `subject` of alice in the demo. */
const ALICE = '45733adb-9b07-4d40-ae57-20cf9b802f51'

/** For tests that ask of what they did themselves. */
const serve = shared(() => postern({ keeps: 'trail' }))

async function renameFund(service: StartedPostern, name: string) {
  const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
  const headers = { ...bearer(token), 'Content-Type': 'application/json' }
  return send(service, { method: 'POST', target: DETAIL, headers, body: JSON.stringify({ Name: name }) })
}

/** The command line beside a service, with its data folder and its admin API. */
function verbsBeside({ data, adminPort }: Pick<StartedPostern, 'data' | 'adminPort'>) {
  const file = configFiles({ 'a.yaml': `extends: ${DEMO}\n` })('a.yaml')
  const env = { POSTERN_CONFIG: file, POSTERN_DATA: data, POSTERN_ADMIN_PORT: String(adminPort) }
  return (...args: string[]) => runVerb(['audit', ...args], { env })
}

async function asking(service: StartedPostern, path: string, init: RequestInit = {}) {
  const token = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
  const response = await fetch(`${service.adminUrl}${path}`, {
    ...init,
    headers: { Authorization: `Bearer ${token}` },
  })
  return { status: response.status, body: await response.text() }
}

const rowsOf = ({ body }: { body: string }): readonly AuditRow[] =>
  (JSON.parse(body) as { rows: readonly AuditRow[] }).rows

describe('C12.5 who changed a fund', () => {
  it('is told across restarts and midnight by one command, which leaves a record, while no service runs', async () => {
    const data = await dataFolder()
    const clock = movableClock(Date.UTC(2026, 2, 30, 23, 59, 30))
    const ids: unknown[] = []
    for (const name of ['First', 'Second']) {
      const service = await startPostern({ data, clock, keeps: 'trail' })
      const response = await renameFund(service, name)
      expect(response.status).toBe(200)
      ids.push(response.headers['x-request-id'])
      clock.advance(60_000)
      await service.close()
    }
    const verb = verbsBeside({ data, adminPort: 1 })
    const asked = ['find', '--business', 'ACME', '--fund', 'SUPER1', '--changed', '--month', '2026-03']
    const { code, stdout, stderr } = await verb(...asked)
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(
        /^2 rows\. The trail begins at 2026-03-30T\S+Z\. It has nothing of the time before\. Signed up to 20\S+Z\. Whether the trail is whole: postern audit verify\n$/,
      ),
    ])
    const [heads, ...lines] = stdout.trim().split('\n')
    expect(heads).toMatch(/^TIME \(UTC\) +WHO +WHAT +OUTCOME +REQUEST$/)
    expect(lines).toEqual([
      expect.stringMatching(
        new RegExp(
          `^2026-03-30T23:59:30.000Z {2}user ${ALICE} through acme-books from 127.0.0.1 {2}POST fund-data/fund-detail of fund SUPER1 at ACME {2}success 200 {2}${String(ids[0])}$`,
        ),
      ),
      expect.stringMatching(new RegExp(`^2026-03-31T00:00:30.000Z .* ${String(ids[1])}$`)),
    ])
    expect(recordsOf({ data }, 'audit.queried')).toMatchObject([
      {
        actor: { kind: 'operator', via: 'cli', claimed: expect.any(String) },
        change: { asked: { fund: 'SUPER1', changed: 'true', month: '2026-03' } },
      },
    ])
    expect((await verb('find', join(data, 'audit'), '--by', ALICE, '--month', '2026-04')).stderr).toMatch(
      /^No record fits \(a user is named by the `sub` of the tokens, [^)]*\)\. /,
    )
    expect(recordsOf({ data }, 'audit.queried')).toHaveLength(1)
  })

  it('C12.5 of a month before the trail begins says when it begins, and ends with 1; so does the service', async () => {
    const service = await serve()
    await renameFund(service, 'Renamed')
    const beside = verbsBeside(service)
    const message =
      /^No record fits\. The trail begins at 20\S+Z\. It has nothing of the time that was asked for\. Signed/
    for (const asked of [[], [join(service.data, 'audit')]]) {
      const { code, stderr } = await beside('find', ...asked, '--month', '2020-03')
      expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
    }
    expect(await beside('find', '--from', '2999-01', '--json')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('or that time has not come') as string,
    })
    expect((await beside('find', '--month', '2020-03', '--until', '2020-04')).code).toBe(2)
  })

  it('is told by the service that runs, which records the operator', async () => {
    const service = await serve()
    await renameFund(service, 'Renamed')
    const verb = verbsBeside(service)
    const { code, stdout } = await verb('find', '--fund', 'SUPER1', '--changed', '--reason', 'audit of 2026')
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('fund-data/fund-detail of fund SUPER1 at ACME'),
    ])
    await expect
      .poll(() => recordsOf(service, 'audit.queried'))
      .toMatchObject([
        {
          actor: { kind: 'operator', operator: 'admin', claimed: expect.any(String), via: 'cli' },
          change: { asked: { fund: 'SUPER1', changed: 'true' } },
          why: 'audit of 2026',
        },
      ])
    expect((await verb('find', '--fund', 'SUPER1', '--csv')).stdout).toMatch(/^time,event,outcome,/)
    await expect.poll(() => recordsOf(service, 'audit.exported')).toHaveLength(1)
  })
})

describe('C12.5 everything of one request', () => {
  it('is shown in order and in words', async () => {
    const service = await serve()
    const id = String((await renameFund(service, 'Renamed')).headers['x-request-id'])
    const { code, stdout } = await verbsBeside(service)('show', id)
    expect(code).toBe(0)
    const [intent = '', outcome = ''] = stdout.split(/\n(?=2)/)
    expect(intent).toMatch(/^\S+Z {2}call\.intended {2}pending\n {4}A changing call is about to be sent/)
    expect(intent).toMatch(
      /\n {4}on {7}business ACME, fund SUPER1, area fund-data, action fund-detail, method POST\n/,
    )
    expect(outcome).toMatch(/^\S+Z {2}call\.settled {2}success\n/)
    expect((await verbsBeside(service)('show', 'f'.repeat(32))).stderr).toMatch(
      /^No record has this request id\. /,
    )
  })
})

describe('C12.5 the admin API', () => {
  it('answers page by page, as one stream, and for one request', async () => {
    const service = await postern({ keeps: 'trail' })
    const id = String((await renameFund(service, 'One')).headers['x-request-id'])
    await renameFund(service, 'Two')
    const first = await asking(service, '/audit?fund=SUPER1&limit=1')
    const { next } = JSON.parse(first.body) as { next: string }
    const second = await asking(service, `/audit?fund=SUPER1&limit=1&cursor=${next}`)
    expect([...rowsOf(first), ...rowsOf(second)]).toMatchObject([
      { event: 'call.intended', outcome: 'success', requestId: id, actor: { address: '127.0.0.1' } },
      { event: 'call.intended', outcome: 'success' },
    ])
    expect(rowsOf(second)[0]?.requestId).not.toBe(id)
    expect(rowsOf(await asking(service, `/audit/${id}`)).map(({ event }) => event)).toEqual([
      'call.intended',
      'call.settled',
    ])
    expect((await asking(service, `/audit/${'0'.repeat(32)}`)).status).toBe(404)
    expect(rowsOf(await asking(service, '/audit/open'))).toEqual([])
    const stream = (await asking(service, '/audit/stream?fund=SUPER1')).body.trim().split('\n')
    expect(JSON.parse(stream.at(-1) ?? '')).toMatchObject({ end: { rows: 2, unreadableCount: 0 } })
    await expect.poll(() => recordsOf(service, 'audit.queried')).toHaveLength(5)
    await expect.poll(() => recordsOf(service, 'audit.exported')).toHaveLength(1)
  })

  it('refuses what it cannot read, with every problem', async () => {
    const service = await serve()
    const { status, body } = await asking(service, '/audit?month=2026-13&event=call.intendet')
    expect([status, JSON.parse(body)]).toEqual([
      400,
      {
        error: 'the request does not fit',
        problems: [
          'event  there is no event "call.intendet" — did you mean "call.intended"?',
          'month  there is no month 2026-13: expected a month such as 2026-03',
        ],
      },
    ])
    for (const path of ['/audit?cursor=x', '/audit?limit=1001', '/audit?limit=0', '/audit?colour=red'])
      expect((await asking(service, path)).status, path).toBe(400)
    expect(recordsOf(service, 'audit.queried')).toEqual([])
  })

  it('verifies the trail, and records what was found', async () => {
    const service = await serve()
    await renameFund(service, 'Renamed')
    const { status, body } = await asking(service, '/audit/verify', { method: 'POST' })
    expect([status, JSON.parse(body)]).toMatchObject([200, { whole: true, found: 0, findings: [] }])
    await expect
      .poll(() => recordsOf(service, 'audit.verified'))
      .toMatchObject([
        { outcome: 'success', actor: { operator: 'admin' }, change: { whole: true, found: 0 } },
      ])
  })

  it('answers 409 where no trail is kept', async () => {
    const service = await postern({ keeps: 'nothing' })
    expect((await asking(service, '/audit')).status).toBe(409)
  })
})

describe('C12.5 the command', () => {
  it('tells what is wrong with a question, with exit code 2', async () => {
    const verb = verbsBeside({ data: await dataFolder(), adminPort: 1 })
    for (const [args, problem] of [
      [
        ['find', '--month', '2026-02-30'],
        '--month: there is no day 2026-02-30: expected a month such as 2026-03',
      ],
      [
        ['find', '--event', 'user.addd'],
        '--event: there is no event "user.addd" — did you mean "user.added"?',
      ],
      [['find', '--csv', '--jsonl'], 'expected one of --csv, --json and --jsonl'],
      [['show'], 'expected REQUEST-ID [FOLDER…], got nothing'],
    ] as const) {
      const { code, stderr, stdout } = await verb(...args)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toContain(`postern: ${problem}`)
    }
  })

  it('says how users are named, where a name finds nothing', async () => {
    const verb = verbsBeside({ data: await dataFolder(), adminPort: 1 })
    for (const filter of ['--user', '--by']) {
      const { code, stderr } = await verb('find', filter, 'alice')
      expect([code, stderr]).toEqual([
        0,
        expect.stringMatching(/^No record fits \(a user is named by the `sub`/m),
      ])
    }
  })

  it('tells a folder that it cannot read, or that holds no trail', async () => {
    const data = await dataFolder()
    const verb = verbsBeside({ data, adminPort: 1 })
    expect(await verb('find', join(data, 'nowhere'))).toMatchObject({
      code: 1,
      stderr: `postern: ${join(data, 'nowhere')} cannot be read (ENOENT: there is no such file or folder)\n`,
    })
    for (const [args, status] of [
      [['find', data], 1],
      [['verify', data], 2],
    ] as const)
      expect(await verb(...args)).toMatchObject({
        ...{ code: status, stdout: '' },
        stderr: `postern: ${data} is not the folder of an audit trail: name the one that holds its days\n`,
      })
  })
})
