import { describe, expect, it, onTestFinished } from 'vitest'
import type { TargetChange } from '../../../src/gateway/backends/forward/target/targets.ts'
import type { Fault } from '../../../src/base/kernel/faults.ts'
import { systemClock, type Clock } from '../../../src/base/kernel/clock.ts'
import { makeCall, type CallOverrides } from '../../support/calls.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { openHttpBackend } from '../../support/http-backend.ts'
import { answerJson, startUpstream, type UpstreamBehaviour } from '../../support/start-upstream.ts'

type Rules = Parameters<typeof openHttpBackend>[1]

const silent: UpstreamBehaviour = () => undefined
const resets: UpstreamBehaviour = (connection) => connection.reset()

/** A backend over one upstream for each behaviour. */
async function begin(behaviours: readonly UpstreamBehaviour[], rules?: Rules, clock: Clock = systemClock) {
  const upstreams = await Promise.all(behaviours.map((each) => startUpstream(each)))
  const changes: [number, TargetChange][] = []
  const backend = openHttpBackend(
    upstreams.map(({ url }) => url),
    {
      targetChanged: (target, change) =>
        changes.push([upstreams.findIndex(({ url }) => url === target), change]),
      ...rules,
    },
    clock,
  )
  onTestFinished(() => backend.close())
  return {
    upstreams,
    changes,
    backend,
    counts: () => upstreams.map(({ requests }) => requests.length),
    ask: (call?: CallOverrides) => backend.answer(makeCall(call)),
    codeOf: (call?: CallOverrides): Promise<string> =>
      backend.answer(makeCall(call)).then(
        ({ status }) => String(status),
        (thrown: unknown) => (thrown as Fault).code,
      ),
  }
}

describe('C8.4 several targets of an http backend', () => {
  it('C8.4 take turns while they are equally busy', async () => {
    const { ask, counts } = await begin([answerJson(1), answerJson(2), answerJson(3)])
    for (let call = 0; call < 9; call++) await ask()
    expect(counts()).toEqual([3, 3, 3])
  })

  it('T5.4 the least busy gets the next call: one that hangs keeps few of them', async () => {
    const { ask, counts, upstreams } = await begin([silent, answerJson(2), answerJson(3)])
    const hung: Promise<unknown>[] = []
    for (let call = 0; call < 30; call++) {
      const answer = ask()
      hung.push(answer.catch(() => undefined))
      await Promise.race([answer, upstreams[0]!.received(counts()[0]! + 1)])
    }
    expect(counts()[0]).toBe(1)
  })

  it('C8.5 a safe call goes to another target after a connection fault, and after a timeout', async () => {
    for (const bad of [resets, silent]) {
      const { codeOf, counts } = await begin([bad, answerJson(2)], { timeouts: { firstByte: 500 } })
      expect(await Promise.all([codeOf(), codeOf()])).toEqual(['200', '200'])
      expect(counts()).toEqual([1, 2])
    }
  })

  it('C8.5 a call that is not safe, or has a body, is sent once', async () => {
    const body = { kind: 'bytes', bytes: Buffer.from('{}'), contentType: 'application/json' } as const
    for (const call of [{ method: 'POST' }, { method: 'DELETE' }, { method: 'OPTIONS', body }]) {
      const { codeOf, counts } = await begin([resets, resets])
      expect(await codeOf(call)).toBe('upstream_unreachable')
      expect(counts().reduce((sum, count) => sum + count)).toBe(1)
    }
  })

  it.each([0, 1, 3])('C8.5 is sent again %i times at most', async (retries) => {
    const { codeOf, counts } = await begin([resets, resets], { retries })
    expect(await codeOf()).toBe('upstream_unreachable')
    expect(counts().reduce((sum, count) => sum + count)).toBe(1 + retries)
  })

  it('C8.5 a timeout of the only target is not tried again', async () => {
    const { codeOf, counts } = await begin([silent], { timeouts: { firstByte: 60 }, retries: 3 })
    expect(await codeOf()).toBe('upstream_timeout')
    expect(counts()).toEqual([1])
  })
})

describe('passive ejection', () => {
  const ejection = { failures: 3, for: 10_000 }

  it('C8.4 leaves a target out after failures in a row, and lets one call try it later', async () => {
    const clock = movableClock()
    const { ask, upstreams, counts, changes } = await begin([resets, answerJson(2)], { ejection }, clock)
    for (let call = 0; call < 6; call++) await ask()
    expect(changes).toEqual([[0, 'ejected']])
    const [before] = counts()
    expect(before).toBe(3)
    for (let call = 0; call < 10; call++) await ask()
    expect(counts()[0]).toBe(3)
    clock.advance(10_000)
    for (let call = 0; call < 4; call++) await ask()
    expect(counts()[0]).toBe(4)
    upstreams[0]!.behave(answerJson(1))
    clock.advance(10_000)
    for (let call = 0; call < 8; call++) await ask()
    expect(changes).toEqual([
      [0, 'ejected'],
      [0, 'ejected'],
      [0, 'readmitted'],
    ])
    expect(counts()[0]).toBeGreaterThan(6)
  })

  it('C8.4 counts failures in a row only', async () => {
    let turn = 0
    const flaky: UpstreamBehaviour = (connection) =>
      ++turn % 3 === 0 ? connection.respond() : connection.reset()
    const { codeOf, changes } = await begin([flaky], { ejection, retries: 0 })
    for (let call = 0; call < 12; call++) await codeOf()
    expect(changes).toEqual([])
  })

  it('C8.4 asks all as if they were well where none is', async () => {
    const { codeOf, upstreams, backend } = await begin([resets, resets], { ejection, retries: 0 })
    for (let call = 0; call < 8; call++) expect(await codeOf()).toBe('upstream_unreachable')
    expect(backend.healthy()).toBe(false)
    for (const upstream of upstreams) upstream.behave(answerJson(1))
    expect(await codeOf()).toBe('200')
  })

  it('C8.4 does not take answers for failures, whatever their status', async () => {
    const { codeOf, changes } = await begin([(connection) => connection.respond({ status: 503 })], {
      ejection,
    })
    for (let call = 0; call < 8; call++) expect(await codeOf()).toBe('upstream_unavailable')
    expect(changes).toEqual([])
  })

  it('C8.4 learns nothing of a client that left', async () => {
    const { ask, changes, upstreams } = await begin([silent], { ejection })
    const leave: (() => void)[] = []
    const calls = Array.from({ length: 8 }, () =>
      ask({ onCancel: (listener) => leave.push(listener) }).catch(() => undefined),
    )
    await upstreams[0]!.received(8)
    for (const go of leave) go()
    await Promise.all(calls)
    expect(changes).toEqual([])
  })
})

describe('T5.1 an upstream that closes kept connections as they are used', () => {
  /** The second request of any connection is answered with its end. */
  it('T5.1 fails none of 200 safe calls, 10 at a time', async () => {
    const used = new WeakSet<object>()
    const { codeOf } = await begin([
      (connection) => {
        if (used.has(connection.socket)) connection.reset()
        else connection.respond({ body: '1' })
        used.add(connection.socket)
      },
    ])
    for (let round = 0; round < 20; round++)
      expect(new Set(await Promise.all(Array.from({ length: 10 }, () => codeOf())))).toEqual(new Set(['200']))
  })
})

describe('C8.2 where calls are sent', () => {
  it('C8.2 a configured Host stands in place of the target’s', async () => {
    const { ask, upstreams } = await begin([answerJson(1)], { host: 'funds.internal' })
    await ask()
    expect(upstreams[0]!.requests[0]?.headers['host']).toEqual(['funds.internal'])
  })
})
