import { describe, expect, it } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { FAULTS } from '../../../src/base/kernel/fault-table.ts'
import { ClientTallies } from '../../../src/operate/watch/metrics/counts.ts'
import { Exposition } from '../../../src/operate/watch/metrics/exposition.ts'
import { compileMetrics } from '../../../src/operate/watch/metrics/metrics.ts'
import { fakeDecision } from '../../support/events.ts'

const NAMES = { actions: [], backends: [], reasons: Object.keys(FAULTS), grants: [] }

/** A process, whose clients call with tokens that were verified there. */
function startProcess() {
  const metrics = compileMetrics(NAMES)
  const tallies = new ClientTallies()
  const call = (client: string, status = 200) => {
    const principal = { client, tally: tallies.of(client) } as unknown as Principal
    const fault =
      status < 400 ? undefined : new Fault(status < 500 ? 'insufficient_scope' : 'upstream_broken')
    metrics.recorder.decision(fakeDecision({ principal, status, fault }))
  }
  return { metrics, call, take: () => structuredClone(tallies.take()) }
}

function startExposition(clients: number) {
  const exposition = new Exposition({ version: '1', node: 'v26' })
  exposition.limitClients(clients, [])
  const shown = async () =>
    [
      ...(await exposition.text()).matchAll(
        /^postern_client_decisions_total\{client="(.*)",class="(.*)"\} (.*)$/gm,
      ),
    ]
      .map(([, client, result, count]) => `${client} ${result} ${count}`)
      .filter((line) => !line.endsWith(' 0'))
  return { exposition, shown }
}

describe('C11.1 the decisions by client', () => {
  it('C11.1 tell allowed, refused and failed calls of each client that is proven', async () => {
    const { call, take, metrics } = startProcess()
    const { exposition, shown } = startExposition(200)
    call('one')
    call('two')
    call('one', 401)
    call('one', 502)
    call('one')
    metrics.recorder.decision(fakeDecision({ status: 401, fault: new Fault('invalid_token') }))
    exposition.absorb(take())
    exposition.absorb(take())
    expect(await shown()).toEqual(['one allowed 2', 'one refused 1', 'one failed 1', 'two allowed 1'])
    call('two', 200)
    exposition.absorb(take())
    expect(await shown()).toContain('two allowed 2')
  })

  it('C11.1 begin at 0 for each result of a client that was seen once', async () => {
    const { call, take } = startProcess()
    const { exposition } = startExposition(200)
    call('one')
    exposition.absorb(take())
    expect(await exposition.text()).toContain(
      'postern_client_decisions_total{client="one",class="refused"} 0',
    )
  })

  it('C11.1 begin at 0 for the clients of the configuration, in its order and up to the limit', async () => {
    const { call, take } = startProcess()
    const { exposition, shown } = startExposition(0)
    const named = async () =>
      [
        ...(await exposition.text()).matchAll(
          /^postern_client_decisions_total\{client="(.*)",class="allowed"\} 0$/gm,
        ),
      ].map(([, client]) => client)
    exposition.limitClients(3, ['one', 'two', 'other', 'three', 'four'])
    expect(await named()).toEqual(['one', 'two', 'other', 'three'])
    for (const client of ['four', 'three']) call(client)
    exposition.absorb(take())
    expect(await shown()).toEqual(['other allowed 1', 'three allowed 1'])
    exposition.limitClients(4, ['five', 'one', 'six'])
    expect(await named()).toEqual(['one', 'two', 'five'])
  })

  it('T5.8 name the first clients that any process counts, and never others instead', async () => {
    const [left, right] = [startProcess(), startProcess()]
    const { exposition, shown } = startExposition(2)
    const flush = () => {
      for (const process of [left, right]) exposition.absorb(process.take())
    }
    left.call('one')
    right.call('two')
    right.call('three')
    flush()
    left.call('three')
    left.call('two')
    right.call('one')
    right.call('four')
    flush()
    expect(await shown()).toEqual(['one allowed 2', 'two allowed 2', 'other allowed 3'])
  })

  it('C11.1 keep the names when a reload sets another limit', async () => {
    const { call, take } = startProcess()
    const { exposition, shown } = startExposition(1)
    const flush = (...clients: readonly string[]) => {
      for (const client of clients) call(client)
      exposition.absorb(take())
    }
    flush('one', 'two')
    exposition.limitClients(2, [])
    flush('three', 'two')
    exposition.limitClients(0, [])
    flush('one', 'three', 'four')
    expect(await shown()).toEqual(['one allowed 2', 'other allowed 3', 'three allowed 2'])
  })

  it('C11.1 name no client where none may be named, and none that a foreign issuer vouches for', async () => {
    const { call, take, metrics } = startProcess()
    const { exposition, shown } = startExposition(0)
    call('one')
    exposition.absorb(take())
    expect(await shown()).toEqual(['other allowed 1'])
    const foreign = { client: 'foreign' } as unknown as Principal
    metrics.recorder.decision(
      fakeDecision({ principal: foreign, status: 503, fault: new Fault('overloaded') }),
    )
    exposition.absorb(metrics.take())
    expect(await shown()).toEqual(['other allowed 1', 'other failed 1'])
  })

  it('C11.1 cost memory for the clients that call, not for all that ever have', () => {
    const { call, take } = startProcess()
    for (let at = 0; at < 25_000; at++) call(`client-${at}`)
    for (let at = 0; at < 25_000; at++) call(`client-${at}`)
    const counted = take()
    expect(counted.reduce((sum, { amounts }) => sum + (amounts[0] ?? 0), 0)).toBe(50_000)
    expect(take()).toEqual([])
  })
})
