import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bearer, expectFault, send, type Sent } from '../../support/requests.ts'
import { DEMO, KEEPS_NOTHING, spawnPostern, type SpawnedPostern } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

/**
 * C8.4: what a module's code does in its own time is the fault of the call that it was done for, and never the end of
 * the process. In a process of its own: the test runner has a listener for uncaught exceptions too.
 */

const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

const BUGGY = `
  import { Readable } from 'node:stream'
  const never = () => new Promise(() => undefined)
  const soon = (work) => setTimeout(work, 5)
  const boom = (what) => { throw new Error(what) }
  const stream = (stream) => ({ body: { kind: 'stream', stream } })
  const bugs = {
    timer: () => (soon(() => boom('in a timer')), never()),
    rejection: () => (soon(async () => boom('in a promise')), never()),
    forgotten: () => (Promise.reject(new Error('forgotten')), never()),
    streamFails: () => {
      const failed = new Readable({ read: () => undefined })
      failed.destroy(new Error('failed before'))
      return stream(failed)
    },
    streamFailsAlone: () => {
      const failed = new Readable({ read: () => undefined })
      soon(() => failed.destroy(new Error('nobody listens')))
      return never()
    },
    streamNever: () => stream(new Readable({ read: () => undefined })),
    listener: ({ signal }) => (signal.addEventListener('abort', () => boom('in a listener')), never()),
    asyncListener: ({ signal }) => (signal.addEventListener('abort', async () => boom('in a listener')), never()),
    derived: ({ signal }) => {
      AbortSignal.any([signal]).addEventListener('abort', () => boom('in a derived listener'))
      return never()
    },
    sparse: () => ({ body: { kind: 'value', value: Object.assign([], { length: 4_000_000_000 }) } }),
    message: () => boom('x'.repeat(8 * 1024 ** 2)),
    headers: () => ({ headers: { ETag: '"' + 'x'.repeat(10 * 1024 ** 2) + '"' } }),
    ended: async () => {
      const read = Readable.from(['{}'])
      await read.toArray()
      return stream(read)
    },
    afterwards: () => (soon(() => boom('afterwards')), { body: { kind: 'value', value: {} } }),
    bodyListener: ({ body }) => {
      let length = 0 // the first pieces come in the module's own context, the others in that of the socket
      body.stream.on('data', (piece) => (length += piece.length) > 1_000_000 && boom('in a listener of the body'))
      return never()
    },
    bodyLeft: ({ body }) => (body.stream.destroy(), { body: { kind: 'value', value: {} } }),
    fine: () => ({ body: { kind: 'value', value: { Fine: true } } }),
  }
  export default () => ({ answer: (call) => bugs[call.query.get('bug')](call) })`

const CONFIG = `extends: ${DEMO}
${KEEPS_NOTHING}
backends:
  sample:
  funds: { kind: module, file: buggy.mjs, timeout: 300ms }
areas:
  fund-data: { backend: funds }
  member-data: { backend: funds }
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods:
      GET: { scopes: { any: [business.fund.list] } }
      POST: { scopes: { any: [business.fund.list] }, consumes: [text/plain] }
`

const folder = mkdtempSync(join(tmpdir(), 'postern-module-'))
let gateway: SpawnedPostern
let ask: (bug: string, sent?: Partial<Sent>) => ReturnType<typeof send>

beforeAll(async () => {
  writeFileSync(join(folder, 'buggy.mjs'), BUGGY)
  writeFileSync(join(folder, 'buggy.yaml'), CONFIG)
  gateway = await spawnPostern({ config: join(folder, 'buggy.yaml') })
  const { access_token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  ask = (bug, sent) =>
    send(gateway, {
      ...sent,
      target: `${LIST}?bug=${bug}`,
      headers: { ...bearer(access_token), ...sent?.headers },
    })
})
afterAll(async () => {
  await gateway.stop()
  rmSync(folder, { recursive: true })
})

const FAULTS = {
  timer: 'upstream_broken',
  rejection: 'upstream_broken',
  forgotten: 'upstream_broken',
  streamFails: 'upstream_broken',
  streamFailsAlone: 'upstream_broken',
  streamNever: 'upstream_timeout',
  listener: 'upstream_timeout',
  asyncListener: 'upstream_timeout',
  derived: 'upstream_timeout',
  sparse: 'upstream_broken',
  message: 'upstream_broken',
  headers: 'upstream_broken',
  ended: 'upstream_broken',
} as const

/** Lines are written once a second at the latest. */
const FLUSHED = { timeout: 30_000 }

const lines = (): string[] => gateway.output().split('\n')

describe('C8.4: what a module does in its own time', () => {
  it.each(Object.entries(FAULTS))('%s is %s of its call, and others go on', async (bug, fault) => {
    const [answer, other] = await Promise.all([ask(bug), ask('fine')])
    expectFault(answer, fault)
    expect(other.body).toBe('{"Errors":[],"Data":{"Fine":true}}')
  })

  it('C8.1 a listener of its own on an unread body that throws fails that call alone', async () => {
    const body = { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: 'x'.repeat(3_000_000) }
    expectFault(await ask('bodyListener', body), 'outcome_unknown')
    expect((await ask('bodyLeft', body)).body).toBe('{"Errors":[],"Data":{}}')
    expect((await ask('fine')).status).toBe(200)
  })

  it('that throws when its call is over is told in the log, with the call', async () => {
    const answer = await ask('afterwards')
    expect(answer.status).toBe(200)
    await expect
      .poll(() => lines().find((line) => line.includes('"message":"afterwards"')), FLUSHED)
      .toBeDefined()
    const line = lines().find((each) => each.includes('"message":"afterwards"')) ?? '{}'
    const requestId = answer.headers['x-request-id']
    expect(JSON.parse(line)).toMatchObject({
      level: 'error',
      event: 'module_failed',
      backend: 'funds',
      requestId,
    })
    expect((await ask('fine')).status).toBe(200)
  })

  it('T5.11 makes no line of the log longer than a bound', async () => {
    expectFault(await ask('message'), 'upstream_broken')
    await expect.poll(() => gateway.output(), FLUSHED).toContain('xxxxxxxx')
    for (const line of lines()) expect(line.length).toBeLessThan(128 * 1024)
  })
})
