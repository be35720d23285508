import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { FAULTS } from '../../../src/base/kernel/fault-table.ts'
import { Exposition } from '../../../src/operate/watch/metrics/exposition.ts'
import { FAMILIES } from '../../../src/operate/watch/metrics/families.ts'
import { compileMetrics, type MetricNames } from '../../../src/operate/watch/metrics/metrics.ts'
import { fakeDecision, fakeExchange } from '../../support/events.ts'
import { readSeries } from '../../support/metrics.ts'
import { needing } from '../../support/machine.ts'

const NAMES: MetricNames = {
  actions: [
    { area: 'fund-data', action: 'fund-list' },
    { area: 'fund-data', action: 'fund-detail' },
    { area: 'member-data', action: 'member-list' },
  ],
  backends: ['sample'],
  reasons: Object.keys(FAULTS),
  grants: ['password', 'refresh_token'],
}

function start(names = NAMES) {
  const metrics = compileMetrics(names)
  const exposition = new Exposition({ version: '1.2.3', node: 'v26.0.0' })
  const scrape = (): Promise<string> => {
    exposition.absorb(metrics.take())
    return exposition.text()
  }
  return { ...metrics, exposition, scrape }
}

const decision = (reason: string, area: string, action: string): string =>
  `postern_decisions_total{reason="${reason}",area="${area}",action="${action}"}`

const valueOf = (text: string, series: string): number | undefined => {
  const line = text.split('\n').find((each) => each.startsWith(`${series} `))
  return line === undefined ? undefined : Number(line.slice(series.length + 1))
}

describe('metrics', () => {
  it('C11.1 counts requests, decisions and durations by what the configuration names', async () => {
    const { recorder, scrape } = start()
    recorder.decision(fakeDecision({ slot: 1, totalMs: 30, upstreamMs: 25 }))
    recorder.decision(
      fakeDecision({ slot: 1, totalMs: 2, status: 401, fault: new Fault('insufficient_scope') }),
    )
    recorder.decision(fakeDecision({ door: 'none', status: 431, fault: new Fault('headers_too_large') }))
    const text = await scrape()
    expect(
      valueOf(text, 'postern_requests_total{door="api",area="fund-data",method="GET",status="200"}'),
    ).toBe(1)
    expect(valueOf(text, 'postern_requests_total{door="none",area="",method="GET",status="431"}')).toBe(1)
    expect(valueOf(text, decision('allowed', 'fund-data', 'fund-detail'))).toBe(1)
    expect(valueOf(text, decision('insufficient_scope', 'fund-data', 'fund-detail'))).toBe(1)
    expect(valueOf(text, decision('headers_too_large', '', ''))).toBe(1)
    const seconds = (name: string, more = ''): number | undefined =>
      valueOf(text, `${name}{door="api",area="fund-data"${more}}`)
    expect(seconds('postern_request_duration_seconds_count', ',class="2xx"')).toBe(1)
    expect(seconds('postern_request_duration_seconds_sum', ',class="2xx"')).toBeCloseTo(0.03)
    expect(seconds('postern_request_duration_seconds_sum', ',class="4xx"')).toBeCloseTo(0.002)
    expect(seconds('postern_request_duration_seconds_bucket', ',class="4xx",le="0.005"')).toBe(1)
    expect(seconds('postern_gateway_duration_seconds_sum')).toBeCloseTo(0.007)
  })

  it('C11.1 counts tokens, the token cache and backends', async () => {
    const { recorder, scrape } = start()
    const token = { exchange: fakeExchange(), client: undefined, subject: undefined, fault: undefined }
    recorder.token({ ...token, grant: 'password', result: 'issued' })
    recorder.token({ ...token, grant: 'none', result: 'invalid_request' })
    recorder.tokenCache('hit')
    recorder.tokenCache('miss')
    recorder.tokenCache('miss')
    recorder.backend({ backend: 'sample', outcome: 'answered', ms: 3 })
    recorder.backend({ backend: 'sample', outcome: 'upstream_timeout', ms: 3000 })
    const text = await scrape()
    expect(valueOf(text, 'postern_tokens_total{grant="password",result="issued"}')).toBe(1)
    expect(valueOf(text, 'postern_tokens_total{grant="none",result="invalid_request"}')).toBe(1)
    expect(valueOf(text, 'postern_tokens_total{grant="refresh_token",result="issued"}')).toBe(0)
    expect(valueOf(text, 'postern_token_cache_total{outcome="hit"}')).toBe(1)
    expect(valueOf(text, 'postern_token_cache_total{outcome="miss"}')).toBe(2)
    expect(valueOf(text, 'postern_backend_calls_total{backend="sample",outcome="upstream_timeout"}')).toBe(1)
    expect(valueOf(text, 'postern_upstream_duration_seconds_sum{backend="sample"}')).toBeCloseTo(3.003)
    expect(valueOf(text, 'postern_build_info{version="1.2.3",node="v26.0.0"}')).toBe(1)
    expect(text).toContain('process_resident_memory_bytes')
  })

  it('adds up deltas of several processes and of several configurations, and never falls', async () => {
    const exposition = new Exposition({ version: '1', node: 'v26' })
    const [one, two] = [compileMetrics(NAMES), compileMetrics(NAMES)]
    const reloaded = compileMetrics({ ...NAMES, actions: NAMES.actions.toReversed() })
    one.recorder.decision(fakeDecision({ slot: 0 }))
    two.recorder.decision(fakeDecision({ slot: 0 }))
    reloaded.recorder.decision(fakeDecision({ slot: 2 }))
    for (const { take } of [one, two, reloaded]) {
      exposition.absorb(structuredClone(take()))
      exposition.absorb(take())
    }
    const series = 'postern_decisions_total{reason="allowed",area="fund-data",action="fund-list"}'
    expect(valueOf(await exposition.text(), series)).toBe(3)
  })

  it('C11.1 shows series in the order of the configuration, whichever is counted first', async () => {
    const { recorder, scrape } = start()
    for (const slot of [2, 0, 1]) recorder.decision(fakeDecision({ slot }))
    recorder.decision(fakeDecision({ slot: 0, fault: new Fault('insufficient_scope') }))
    await scrape()
    recorder.decision(fakeDecision({ slot: 0, fault: new Fault('no_credentials') }))
    const shown = (await scrape())
      .split('\n')
      .filter((line) => /^postern_decisions_total.*(?<! 0)$/.test(line))
    expect(shown).toEqual([
      'postern_decisions_total{reason="allowed",area="fund-data",action="fund-list"} 1',
      'postern_decisions_total{reason="no_credentials",area="fund-data",action="fund-list"} 1',
      'postern_decisions_total{reason="insufficient_scope",area="fund-data",action="fund-list"} 1',
      'postern_decisions_total{reason="allowed",area="fund-data",action="fund-detail"} 1',
      'postern_decisions_total{reason="allowed",area="member-data",action="member-list"} 1',
    ])
  })

  it('C11.1 counts a status by itself, and one that nobody has registered by its class', async () => {
    const { recorder, scrape } = start()
    for (const status of [200, 304, 299, 499, 599, 999, 0]) recorder.decision(fakeDecision({ status }))
    const text = await scrape()
    const shown = [...text.matchAll(/^postern_requests_total\{.*status="(\w+)"\} (\d+)$/gm)]
    expect(shown.map(([, status, count]) => `${status} ${count}`)).toEqual([
      '1xx 1',
      '2xx 1',
      '4xx 1',
      '5xx 2',
      '200 1',
      '304 1',
    ])
  })

  it('C11.1 counts the calls of each action, their time and their failures, from 0', async () => {
    const { recorder, scrape } = start()
    const value = async (name: string, action: string) =>
      valueOf(await scrape(), `${name}{area="fund-data",action="${action}"}`)
    expect(await value('postern_action_errors_total', 'fund-list')).toBe(0)
    recorder.decision(fakeDecision({ slot: 0, totalMs: 1500 }))
    recorder.decision(fakeDecision({ slot: 0, status: 404, fault: new Fault('unknown_place'), totalMs: 250 }))
    recorder.decision(
      fakeDecision({ slot: 0, status: 502, fault: new Fault('upstream_broken'), totalMs: 250 }),
    )
    recorder.decision(fakeDecision({ status: 500, fault: new Fault('internal') }))
    expect(await value('postern_action_calls_total', 'fund-list')).toBe(3)
    expect(await value('postern_action_seconds_total', 'fund-list')).toBeCloseTo(2)
    expect(await value('postern_action_errors_total', 'fund-list')).toBe(1)
    expect(await value('postern_action_calls_total', 'fund-detail')).toBe(0)
  })

  it('C11.1 shows each success, and each fault without an action, at 0 from the start', async () => {
    const { scrape, recorder } = start()
    const decided = (text: string): readonly (readonly [string, number])[] =>
      [...readSeries(text)].filter(([name]) => name.startsWith('postern_decisions_total'))
    const zeros = decided(await scrape())
    expect(zeros).toEqual([
      ...NAMES.actions.map(({ area, action }) => [decision('allowed', area, action), 0]),
      ...['allowed', ...NAMES.reasons].map((reason) => [decision(reason, '', ''), 0]),
    ])
    recorder.decision(fakeDecision({ slot: 1 }))
    recorder.decision(fakeDecision({ slot: 1, status: 401, fault: new Fault('insufficient_scope') }))
    recorder.decision(fakeDecision({ status: 401, fault: new Fault('no_credentials') }))
    const later = new Map(decided(await scrape()))
    expect(later.size).toBe(zeros.length + 1)
    expect(later.get(decision('allowed', 'fund-data', 'fund-detail'))).toBe(1)
    expect(later.get(decision('no_credentials', '', ''))).toBe(1)
  })

  it('T5.8 has at most 5,000 series with 500 actions in 10 areas, 200 clients and 5 backends', async () => {
    const actions = Array.from({ length: 500 }, (_, at) => ({ area: `area-${at % 10}`, action: `a${at}` }))
    const backends = Array.from({ length: 5 }, (_, at) => `backend-${at}`)
    const { exposition, scrape } = start({ ...NAMES, actions, backends, reportOnly: ['area-1'] })
    exposition.limitClients(
      200,
      Array.from({ length: 300 }, (_, at) => `client-${at}`),
    )
    expect(readSeries(await scrape()).size).toBeLessThanOrEqual(5000)
  })

  it('T5.8 counts the actions beyond the first 500 together, by area', async () => {
    const actions = Array.from({ length: 1000 }, (_, at) => ({ area: `area-${at % 2}`, action: `a${at}` }))
    const { recorder, scrape } = start({ ...NAMES, actions, reportOnly: ['area-1'] })
    const reported = { area: 'area-1', fault: new Fault('no_credentials') }
    for (const slot of [499, 500, 501, 999]) recorder.decision(fakeDecision({ slot }))
    recorder.decision(fakeDecision({ slot: 999, reported }))
    const text = await scrape()
    const further = (name: string, area: string, reason = '') =>
      valueOf(text, `${name}{${reason}area="${area}",action="(others)"}`)
    expect(valueOf(text, 'postern_action_calls_total{area="area-1",action="a499"}')).toBe(1)
    expect(further('postern_action_calls_total', 'area-0')).toBe(1)
    expect(further('postern_action_calls_total', 'area-1')).toBe(3)
    expect(further('postern_decisions_total', 'area-1', 'reason="allowed",')).toBe(3)
    expect(further('postern_would_refuse_total', 'area-1', 'reason="no_credentials",')).toBe(1)
    expect(text.match(/^postern_action_calls_total/gm)).toHaveLength(502)
  })

  it('C11.1 escapes what would end a label value or a line, such as the pattern of a path', async () => {
    const actions = [{ area: 'two\nlines', action: 'a/{id:/\\d+"/}' }]
    const text = await start({ ...NAMES, actions }).scrape()
    expect(text).toContain('postern_action_calls_total{area="two\\nlines",action="a/{id:/\\\\d+\\"/}"} 0\n')
  })

  it('C11.1 gives each family its help and type, also one without series', async () => {
    const text = await start().scrape()
    expect(text).toContain(
      '# HELP postern_log_dropped_total Lines of the log that could not be kept.\n' +
        '# TYPE postern_log_dropped_total counter\npostern_log_dropped_total 0\n',
    )
    expect(text).toMatch(/^# HELP postern_shedding .*\n# TYPE postern_shedding gauge\n\n/m)
  })

  it('T5.8 keeps its series whatever requests say', async () => {
    const { recorder, scrape } = start()
    recorder.decision(fakeDecision())
    const count = (text: string): number =>
      text.split('\n').filter((line) => line.startsWith('postern_')).length
    const before = count(await scrape())
    for (let at = 0; at < 100_000; at++) {
      const exchange = fakeExchange({ method: `M${at}` })
      recorder.decision(fakeDecision({ exchange, slot: at + 10, door: 'api' }))
      recorder.token({
        exchange,
        grant: `g${at}`,
        result: `r${at}`,
        client: `c${at}`,
        subject: undefined,
        fault: undefined,
      })
      recorder.backend({ backend: `b${at}`, outcome: `o${at}`, ms: 1 })
    }
    expect(count(await scrape())).toBeLessThanOrEqual(before + 2)
  })

  it('C11.1 documents every metric, its type and its labels, and nothing else', () => {
    const page = readFileSync(new URL('../../../src/operate/watch/metrics.md', import.meta.url), 'utf8')
    const documented = [...page.matchAll(/^\| `(postern_\w+)` +\| (\w+) +\| ([^|]*) \|/gm)].map(
      ([, name, type, labels]) => [
        name,
        type,
        [...(labels ?? '').matchAll(/`(\w+)`/g)].map((match) => match[1]),
      ],
    )
    expect(documented).toEqual(Object.values(FAMILIES).map(({ name, type, labels }) => [name, type, labels]))
  })

  it('satisfies promtool check metrics', needing('promtool'), async () => {
    const { recorder, scrape } = start()
    recorder.decision(fakeDecision({ slot: 0 }))
    recorder.backend({ backend: 'sample', outcome: 'answered', ms: 3 })
    const text = await scrape()
    const ours = text
      .split('\n')
      .filter((line) => /^(# \w+ )?postern_/.test(line))
      .join('\n')
    expect(execFileSync('promtool', ['check', 'metrics'], { input: `${ours}\n`, encoding: 'utf8' })).toBe('')
    expect(execFileSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' })).toBe('')
  })
})
