import { describe, expect, it } from 'vitest'
import { findTroubles, type Status } from '../../../src/operate/watch/status/status.ts'

const NOW = Date.parse('2026-03-31T03:00:00Z')
const DAY = 86_400_000
const after = (ms: number): string => new Date(NOW + ms).toISOString()

const WELL: Omit<Status, 'troubles'> = {
  ...{
    ready: true,
    failing: [],
    degraded: [],
    version: '1',
    node: 'v26',
    at: after(0),
    started: after(-DAY),
  },
  kind: 'service',
  configuration: { file: undefined, digest: 'd', loaded: after(-DAY), refused: undefined },
  workers: { serving: 2 },
  processes: [{ name: 'main', memoryBytes: 1, eventLoopDelaySeconds: 0 }],
  memory: { bytes: 1, limitBytes: 2 },
  data: { bytes: 1, freeBytes: 2 },
  calls: { inFlight: 3, shedding: false, websockets: 0, passwordChecksWaiting: 0 },
  lockouts: 4,
  store: {
    kind: 'sqlite',
    up: true,
    bytes: 1,
    feedAgeSeconds: 0.2,
    nodes: undefined,
    nodeConfigurations: undefined,
    nodeConfiguration: undefined,
  },
  keys: [{ name: 'ES256-1', state: 'signing', nextRotation: after(DAY), ends: undefined }],
  certificates: [{ name: 'server', expires: after(30 * DAY) }],
  upstreams: [
    { backend: 'funds', healthy: 2, ejected: 0, inFlight: 1, waiting: 0, connections: 2 },
    { backend: 'files', healthy: undefined, ejected: undefined, inFlight: 0, waiting: 0, connections: 0 },
  ],
  maintenance: [
    { scope: 'service', state: 'planned', from: after(DAY), until: undefined, reason: undefined },
  ],
  reportOnly: [],
  disabled: [],
  audit: {
    kept: true,
    writable: true,
    openIntents: 1,
    abandonedIntents: 0,
    signed: after(0),
    anchored: undefined,
  },
}

const troublesOf = (change: Partial<Status>, keysUnreadable = false): readonly string[] =>
  findTroubles({ ...WELL, ...change }, NOW, keysUnreadable)

describe('what is wrong with a service', () => {
  it('C11.5.5 is nothing where all is well, also with planned maintenance, lockouts and open intents', () => {
    expect(troublesOf({})).toEqual([])
  })

  it.each<[string, Partial<Status>, string]>([
    ['it is not ready', { ready: false, failing: ['store'] }, 'Not ready: store.'],
    [
      'the store is down',
      { store: { ...WELL.store, up: false } },
      'The store is out of reach: nobody can log in, and nothing can be revoked.',
    ],
    [
      'the feed is old',
      { store: { ...WELL.store, feedAgeSeconds: 11.4, nodes: undefined, nodeConfiguration: undefined } },
      'The change feed was last read 11 s ago: what was revoked since may still be accepted.',
    ],
    [
      'processes left intents open',
      { audit: { ...WELL.audit, abandonedIntents: 3 } },
      'Changes of unknown outcome, as their processes ended: 3. To see them: postern audit open.',
    ],
    [
      'a target failed',
      { upstreams: [{ ...WELL.upstreams[0]!, healthy: 1, ejected: 1 }] },
      'Backend funds: 1 of 2 targets failed and get no calls.',
    ],
    [
      'all targets failed',
      { upstreams: [{ ...WELL.upstreams[0]!, healthy: 0, ejected: 2 }] },
      'Backend funds has no target left: all 2 failed.',
    ],
    [
      'calls are shed',
      { calls: { ...WELL.calls, shedding: true } },
      'Calls are refused because of overload.',
    ],
    [
      'a part works badly',
      { degraded: [{ name: 'issuer a', reason: 'no keys' }] },
      'Works badly: issuer a: no keys.',
    ],
    [
      'a certificate ends soon',
      { certificates: [{ name: 'server', expires: after(13 * DAY) }] },
      `The certificate server expires at ${after(13 * DAY)}.`,
    ],
    [
      'a certificate has ended',
      { certificates: [{ name: 'server', expires: after(-1) }] },
      `The certificate server expired at ${after(-1)}.`,
    ],
    [
      'a key is late',
      { keys: [{ name: 'ES256-1', state: 'signing', nextRotation: after(-2 * 3_600_000), ends: undefined }] },
      `The key that follows ES256-1 should sign since ${after(-2 * 3_600_000)}.`,
    ],
    [
      'something is closed',
      { maintenance: [{ scope: 'area/a', state: 'on', from: after(-1), until: after(5), reason: 'r' }] },
      `Closed for maintenance since ${after(-1)}: area/a, until ${after(5)}.`,
    ],
    ['an area refuses nothing', { reportOnly: ['a'] }, 'Area a is report-only: it refuses nothing.'],
  ])('C11.5.5 is told in a sentence: %s', (_what, change, sentence) => {
    expect(troublesOf(change)).toEqual([sentence])
  })

  it('C11.5.5 is told the worst first, with the problems of a refused reload', () => {
    const refused = {
      at: after(-5),
      via: 'file change',
      problems: ['a.yaml:1  vendor  is wrong'],
      cause: undefined,
    }
    const told = troublesOf(
      {
        ...{ failing: ['workers'], reportOnly: ['a'], configuration: { ...WELL.configuration, refused } },
        store: { ...WELL.store, up: false },
      },
      true,
    )
    expect(told).toEqual([
      'Not ready: workers.',
      expect.stringMatching(/^The store/),
      'The signing keys cannot be read.',
      expect.stringMatching(/^A reload was refused at .* \(file change\)/),
      '  a.yaml:1  vendor  is wrong',
      'Area a is report-only: it refuses nothing.',
    ])
  })
})
