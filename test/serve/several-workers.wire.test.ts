/** What several worker processes are as one: the tests share a service of two, and leave it as it was for each other. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { NO_TRAIL } from '../../src/base/contracts/records/audit.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { openMeasures } from '../../src/serve/parts/measures.ts'
import { openState } from '../../src/serve/parts/state.ts'
import { RelayRecorder } from '../../src/operate/watch/recorders.ts'
import { recordsOf } from '../support/audit-files.ts'
import { ALICE, SCOPE } from '../support/audited-people.ts'
import { directoryEditors } from '../support/directory-editors.ts'
import { eventually } from '../support/eventually.ts'
import { sized } from '../support/long.ts'
import { seriesOf } from '../support/metrics.ts'
import { postForm } from '../support/oauth.ts'
import { operated, operatedHere } from '../support/operated.ts'
import { bearer, send } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { fillStore, STORED_PASSWORD } from '../support/stored-records.ts'
import { issueToken } from '../support/tokens.ts'
import { SETTINGS, STATE_PARTS } from '../../src/serve/start/settings.ts'

const one = shared(() => operatedHere())
const two = shared(async () => {
  const { url } = await startUpstream()
  return operated(2, '', { UPSTREAM_URL: url })
})

const at = (business: string, fund: string): string =>
  `/api/1.0/f/${business}/${fund}/member-data/member-list`

describe('operators', () => {
  it.each([
    ['one worker', one],
    ['two workers', two],
  ])('C11.5.5 see how a service is, by API and by command: with %s', async (_name, start) => {
    const service = await start()
    const { status, body } = await service.admin('GET', '/status')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      ...{ ready: true, failing: [], degraded: [], kind: 'service', version: expect.any(String) },
      configuration: { digest: expect.stringMatching(/^[0-9a-f]{64}$/), loaded: expect.stringMatching(/Z$/) },
      store: { kind: 'sqlite', bytes: expect.any(Number) },
      keys: [
        { name: 'ES256-1', state: 'signing', nextRotation: expect.stringMatching(/Z$/) },
        { name: 'RS256-1' },
      ],
      calls: { shedding: false, websockets: 0 },
      audit: { kept: true },
      maintenance: [],
    })
    const json = await service.postern('status', '--json')
    expect(JSON.parse(json.out).configuration.digest).toBe(body.configuration.digest)
    const page = await service.postern('status')
    expect(page).toMatchObject({ code: 0, err: '' })
    expect(page.out).toMatch(/^READY {2}Postern \S+/)
    for (const label of [
      'started',
      'configuration',
      'processes',
      '  process',
      'data folder',
      'store',
      'audit trail',
      '  key',
    ])
      expect(page.out).toMatch(new RegExp(`^${label} `, 'm'))
  })

  it.each([
    ['one worker', one, ['main']],
    ['two workers', two, ['main', 'worker-1', 'worker-2']],
  ])('C11.1, C11.5.5 see what each process takes of the machine: with %s', async (_name, start, names) => {
    const service = await start()
    const status = async () => (await service.admin('GET', '/status')).body
    await eventually(async () =>
      expect((await status()).processes.map(({ name }: { name: string }) => name)).toEqual(names),
    )
    // What a first start has made counts, and not a minute later.
    await expect.poll(async () => (await status()).data.bytes).toBeGreaterThan(0)
    const { processes, memory, data } = await status()
    for (const { memoryBytes, eventLoopDelaySeconds } of processes) {
      expect(memoryBytes).toBeGreaterThan(20 * 1024 ** 2)
      expect(eventLoopDelaySeconds).toBeGreaterThanOrEqual(0)
    }
    const sum = processes.reduce(
      (all: number, { memoryBytes }: { memoryBytes: number }) => all + memoryBytes,
      0,
    )
    expect(memory.bytes).toBe(sum)
    expect(memory.limitBytes).toBeGreaterThan(memory.bytes)
    expect(data.bytes).toBeGreaterThan(0)
    expect(data.freeBytes).toBeGreaterThan(0)
    const series = await seriesOf(service)
    for (const name of names)
      expect(series.get(`postern_process_cpu_seconds_total{process="${name}"}`), name).toBeGreaterThan(0)
  })

  it.each([
    ['one worker', one],
    ['two workers', two],
  ])(
    'C11.5.2 end one family after a preview, and no other; recorded with the name: with %s',
    async (_workers, start) => {
      const service = await start()
      const [mine, other] = [
        await issueToken(service, { scope: SCOPE }),
        await issueToken(service, { scope: SCOPE }),
      ]
      const userinfo = async (token: string): Promise<number> =>
        (
          await fetch(`${service.baseUrl}/api/1.0/u/connect/userinfo`, {
            headers: { authorization: `Bearer ${token}` },
          })
        ).status
      const refresh = (token = '') =>
        postForm(service, '/connect/token', {
          params: { grant_type: 'refresh_token', refresh_token: token },
          client: 'acme-books',
        })
      await refresh(mine.refresh_token)
      const listed = await service.admin('GET', '/families')
      const { id } = listed.body.families.find(
        ({ lastUsed }: { lastUsed?: string }) => lastUsed !== undefined,
      )
      const preview = await service.admin('DELETE', `/families?id=${id}&preview=true`)
      expect(preview.body).toMatchObject({ outcome: 'previewed', count: 1, rows: [{ id }] })
      expect(await userinfo(mine.access_token)).toBe(200)
      const ended = await service.admin('DELETE', `/families?id=${id}&reason=lost`)
      expect(ended.body).toMatchObject({ outcome: 'ended', count: 1, families: 1, rows: [{ id }] })
      await expect.poll(() => userinfo(mine.access_token)).toBe(401)
      expect(await userinfo(other.access_token)).toBe(200)
      expect((await refresh(other.refresh_token)).status).toBe(200)
      expect((await service.admin('DELETE', `/families?id=${id}`)).status).toBe(404)
      await expect.poll(() => recordsOf(service, 'revocation.ordered').length).toBe(1)
      expect(recordsOf(service, 'revocation.ordered')).toMatchObject([
        {
          outcome: 'success',
          actor: { kind: 'operator', operator: 'admin', via: 'admin' },
          on: { kind: 'tokens', family: id, subject: ALICE },
          why: 'lost',
        },
      ])
    },
  )
})

describe('callers', () => {
  it('C11.5.7 is issued by any of several workers, and accepted by all', async () => {
    const several = await two()
    const wish = { user: 'alice', target: 'b/ACME', scope: 'openid fund.read' }
    const { body } = await several.admin('POST', '/test-tokens', wish)
    const headers = { authorization: `Bearer ${body.token}`, connection: 'close' }
    const userinfo = (): Promise<number> =>
      fetch(`${several.baseUrl}/api/1.0/u/connect/userinfo`, { headers }).then(({ status }) => status)
    expect(await Promise.all([userinfo(), userinfo(), userinfo()])).toEqual([200, 200, 200])
    expect(await several.admin('POST', '/test-tokens', { ...wish, user: 'nobody' })).toMatchObject({
      status: 409,
      body: { problems: ['invalid_grant  there is no such user'] },
    })
    const refresh = await postForm(several, '/connect/token', {
      params: { grant_type: 'refresh_token', refresh_token: body.token },
    })
    expect(refresh.status).toBe(400)
  })
})

describe('with several workers', () => {
  it('C14.4 finds a call, whichever worker it was of', async () => {
    const service = await two()
    const ids = await Promise.all(
      Array.from({ length: sized(6, 12) }, async () => {
        const target = `${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-list`
        const response = await fetch(target, { headers: { connection: 'close' } })
        await response.arrayBuffer()
        return response.headers.get('x-request-id') ?? ''
      }),
    )
    for (const id of ids)
      expect((await service.postern('explain', '--request', id)).out).toContain('then: 401 no_credentials')
  })
})

describe('C11.5.1 changes of places by another process', () => {
  it('are in force in both workers when the editor is done', async () => {
    const service = await two()
    const { configuration } = SETTINGS.read(service.file, {
      ...{ UPSTREAM_URL: 'http://127.0.0.1:9', POSTERN_DATA: service.data },
    })
    const state = await openState(configuration!, {
      measures: openMeasures(configuration!, false),
      ...STATE_PARTS,
      ...{ clock: systemClock, recorder: new RelayRecorder(), audit: NO_TRAIL },
    })
    onTestFinished(() => state[Symbol.asyncDispose]())
    const editors = await directoryEditors(configuration!, state)
    const secret = await fillStore(editors)
    const tokenFor = async (): Promise<string> => {
      const answer = await postForm(service, '/connect/token', {
        ...{ client: 'tally', secret },
        params: {
          ...{ grant_type: 'password', username: 'ann', password: STORED_PASSWORD },
          scope: 'fund.read business.fund.list target:b/STORED',
        },
      })
      expect(answer.status, JSON.stringify(answer.json)).toBe(200)
      return String(answer.json['access_token'])
    }
    /** What many calls on connections of their own are answered: both workers are among those that answer. */
    const statuses = async (target: string, token: string): Promise<readonly number[]> => {
      const headers = { ...bearer(token), Connection: 'close' }
      const answers = await Promise.all(
        Array.from({ length: 16 }, () =>
          send({ port: Number(new URL(service.baseUrl).port) }, { target, headers }),
        ),
      )
      return [...new Set(answers.map(({ status }) => status))]
    }
    const token = await tokenFor()
    expect(await statuses(at('STORED', 'F1'), token)).toEqual([200])
    expect(await statuses(at('STORED', 'F2'), token)).toEqual([404])
    await editors.funds.add({ business: 'STORED', code: 'F2' })
    await editors.funds.disable('STORED/F1')
    expect(await statuses(at('STORED', 'F1'), token)).toEqual([404])
    expect(await statuses(at('STORED', 'F2'), token)).toEqual([200])
    await editors.businesses.remove('STORED')
    expect(await statuses(at('STORED', 'F2'), token)).toEqual([401])
  })
})

describe('C12.3 people, by two workers', () => {
  it('C12.3 lockout.began is recorded once, by the process that counts for all, and in the same chain as what workers record', async () => {
    const service = await two()
    onTestFinished(async () => {
      expect((await service.admin('DELETE', '/lockouts?user=alice')).body).toEqual({ cleared: 1 })
    })
    const params = { grant_type: 'password', username: 'alice', password: 'wrong', scope: 'openid' }
    for (let count = 0; count < 7; count += 1) await postForm(service, '/connect/token', { params })
    const refused = () =>
      recordsOf(service, 'token.refused').filter(
        ({ grant }) => (grant as { grant?: string } | undefined)?.grant === 'password',
      )
    await expect.poll(() => refused().length).toBe(7)
    await expect.poll(() => recordsOf(service, 'lockout.began').length).toBe(1)
    const [began] = recordsOf(service, 'lockout.began')
    expect(new Set([...refused(), began].map((record) => record?.['writer'])).size).toBe(1)
  })
})
