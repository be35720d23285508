import { describe, expect, it, onTestFinished } from 'vitest'
import { upstreamFault } from '../../../src/gateway/backends/forward/response/response.ts'
import {
  attemptOutcome,
  checkHealth,
  type TargetChange,
  UpstreamTarget,
} from '../../../src/gateway/backends/forward/target/targets.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { forwardingRules } from '../../support/http-backend.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { answerJson, startUpstream } from '../../support/start-upstream.ts'

const RULES = { path: '/health', interval: 5000, timeout: 2000, unhealthy: 3, healthy: 2 }

async function begin() {
  const upstream = await startUpstream()
  const rules = forwardingRules(`${upstream.url}/base`)
  const changes: TargetChange[] = []
  const target = new UpstreamTarget(rules.targets[0]!, rules, systemClock, (_name, change) =>
    changes.push(change),
  )
  const timers = manualAfter()
  const stop = checkHealth(target, RULES, { host: undefined }, timers.after)
  onTestFinished(async () => {
    stop()
    await target.close()
  })
  /** Lets the next question be asked, and its answer come. */
  const turn = async (): Promise<void> => {
    const count = upstream.requests.length
    await timers.fire()
    await upstream.received(count + 1)
    while (!timers.delays().includes(RULES.interval)) await new Promise((resolve) => setImmediate(resolve))
  }
  return { upstream, target, changes, timers, stop, turn }
}

describe('the checks of a target’s health', () => {
  it('C8.4 ask its path under the base path, first after an interval', async () => {
    const { upstream, timers, turn } = await begin()
    expect(timers.delays()).toEqual([5000])
    expect(upstream.connections).toEqual([])
    await turn()
    expect(upstream.requests[0]).toMatchObject({ method: 'GET', target: '/base/health' })
  })

  it('C8.4 put it out after so many bad answers in a row, and bring it back after good ones', async () => {
    const { upstream, target, changes, turn } = await begin()
    upstream.behave((connection) => connection.respond({ status: 500 }))
    await turn()
    await turn()
    upstream.behave(answerJson(1))
    await turn()
    upstream.behave((connection) => connection.reset())
    await turn()
    await turn()
    expect([target.isUsable, changes]).toEqual([true, []])
    await turn()
    expect([target.isUsable, target.isHealthy, changes]).toEqual([false, false, ['unhealthy']])
    upstream.behave(answerJson(1))
    await turn()
    expect(target.isUsable).toBe(false)
    await turn()
    expect([target.isUsable, changes]).toEqual([true, ['unhealthy', 'healthy']])
  })

  it('C8.4 take an answer that is late for a bad one', async () => {
    const { upstream, target, timers } = await begin()
    upstream.behave(() => undefined)
    for (let question = 1; question <= 3; question++) {
      await timers.fire()
      await upstream.received(question)
      await timers.fire()
    }
    expect(target.isHealthy).toBe(false)
  })

  it('C11.1.1 blame no target where this process has too few descriptors left', async () => {
    const timers = manualAfter()
    const states: boolean[] = []
    let probes = 0
    const full = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE' })
    const stop = checkHealth(
      {
        probe: (_request, callback) => {
          probes += 1
          callback(full, undefined)
          return { cancel: () => undefined } as never
        },
        setHealthy: (healthy) => void states.push(healthy),
      },
      RULES,
      { host: undefined },
      timers.after,
    )
    for (let question = 1; question <= RULES.unhealthy; question += 1) {
      await timers.fire()
      await Promise.resolve()
    }
    stop()
    expect([probes, states, attemptOutcome(full)]).toEqual([RULES.unhealthy, [], 'unknown'])
    expect(upstreamFault(full)).toMatchObject({ code: 'overloaded', facts: { retryAfter: 5 } })
  })

  it('C8.4 stop', async () => {
    const { stop, timers } = await begin()
    stop()
    expect(timers.delays()).toEqual([])
  })
})
