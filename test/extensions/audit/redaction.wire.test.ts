/** Personal values are erased while the service writes its trail (C12.2.3). */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { verifyTrail } from '../../../src/extensions/audit/read/verify.ts'
import { recordsOf, type WrittenRecord } from '../../support/audit-files.ts'
import { CREATE, JSON_BODY, NEW_FUND } from '../../support/audited-calls.ts'
import { configFiles } from '../../support/config-files.ts'
import { runVerb } from '../../support/command-line.ts'
import { eventually } from '../../support/eventually.ts'
import { shared } from '../../support/shared.ts'
import { WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { postern } from '../../support/start-postern.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import { poolConfig, startPool, type StartedPool } from '../../support/worker-pool.ts'

const subjectOf = ({ actor }: WrittenRecord): string | undefined => (actor as { subject?: string }).subject

/** How many change data at once; and their changes before a redaction, and behind it. */
const CALLERS = 4
const CHANGES = 40

/** One change after another until stopped; the statuses of the answers. */
function changing({ baseUrl }: Pick<StartedPool, 'baseUrl'>, token: string) {
  const headers = { ...JSON_BODY, Authorization: `Bearer ${token}`, Connection: 'close' }
  const statuses: number[] = []
  let stopped = false
  const one = async (): Promise<void> => {
    while (!stopped) {
      const response = await fetch(baseUrl + CREATE, { method: 'POST', headers, body: NEW_FUND })
      await response.arrayBuffer()
      statuses.push(response.status)
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, one))
  return {
    statuses,
    stop: async () => {
      stopped = true
      await callers
    },
  }
}

/** One worker serves in this process, two in processes of their own. */
const served = shared(async (workers: number) => {
  const upstream = await startUpstream(answerJson({ Code: 'NEW1' }))
  const config = poolConfig(upstream.url, WITHOUT_WAITS)
  if (workers === 2) return startPool(config)
  const file = configFiles({ 'a.yaml': config.replace('workers: 2', 'workers: 1') })('a.yaml')
  const service = await postern({ file })
  return {
    ...service,
    file,
    token: async () => (await issueToken(service, { scope: ALL_AT_ACME })).access_token,
  }
})
/** For a test that stops one of its processes. */
const two = (): Promise<StartedPool> => served.own(2) as Promise<StartedPool>

const until = (fits: () => boolean): Promise<void> =>
  eventually(() => {
    if (!fits()) throw new Error('not yet')
  })

describe('C12.2.3 redaction by the service that writes the trail', () => {
  it.each([1, 2])('C12.2.3 %i worker(s) under load lose no value but those ordered', async (workers) => {
    const service = await served(workers)
    const { data } = service
    const load = changing(service, await service.token())
    await until(() => load.statuses.length >= CHANGES)
    const before = new Set(recordsOf({ data }, 'call.intended').map(({ requestId }) => requestId))
    const subject = recordsOf({ data }, 'call.intended').map(subjectOf)[0] ?? ''

    const env = { POSTERN_CONFIG: service.file, POSTERN_DATA: data }
    const verb = ['audit', 'redact', '--subject', subject, '--reason', 'request 4711']
    expect(await runVerb(verb, { env })).toMatchObject({ code: 0, stderr: '' })
    const erasedBy = load.statuses.length
    await until(() => load.statuses.length >= erasedBy + CHANGES)
    await load.stop()

    expect(new Set(load.statuses)).toEqual(new Set([200]))
    const intents = recordsOf({ data }, 'call.intended')
    const [older, newer] = [true, false].map((old) =>
      intents.filter((each) => before.has(each['requestId']) === old),
    )
    expect(older?.filter(({ values }) => Object.keys(values).length > 0)).toEqual([])
    // Those that the redaction met under way may be older.
    expect(newer?.filter(({ values }) => Object.keys(values).length > 0).length).toBeGreaterThanOrEqual(
      CHANGES - CALLERS,
    )
    expect(recordsOf({ data }, 'audit.redacted')).toMatchObject([
      {
        outcome: 'pending',
        actor: { kind: 'operator', operator: 'admin' },
        on: { subject },
        why: 'request 4711',
      },
      { outcome: 'success', change: { values: expect.any(Number) } },
    ])
    expect(verifyTrail({ folder: join(data, 'audit') })).toMatchObject({ whole: true, findings: [] })
  })

  it('C12.2.3 waits for no worker: the values of one that does not answer are erased too, and it goes on', async () => {
    const service = await two()
    const { data } = service
    const load = changing(service, await service.token())
    await until(() => load.statuses.length >= 8)
    await load.stop()
    const before = recordsOf({ data }, 'call.intended')
    const subject = before.map(subjectOf)[0] ?? ''
    const [frozen = 0] = service.workers()
    process.kill(frozen, 'SIGSTOP')
    const answer = await service.order('POST', '/audit/redact', { subject, reason: 'request 4711' })
    expect(answer['values']).toBeGreaterThanOrEqual(before.length)
    expect(service.workers()).toContain(frozen)
    process.kill(frozen, 'SIGCONT')
    const intents = recordsOf({ data }, 'call.intended')
    expect(intents.filter(({ values }) => Object.keys(values).length > 0)).toEqual([])
    const more = changing(service, await service.token())
    await until(() => more.statuses.length >= 8)
    await more.stop()
    expect(new Set(more.statuses)).toEqual(new Set([200]))
    expect(verifyTrail({ folder: join(data, 'audit') })).toMatchObject({ whole: true, findings: [] })
  })
})
