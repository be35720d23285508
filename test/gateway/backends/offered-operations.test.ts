import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  type OfferedOperation,
  publicPathOf,
} from '../../../src/gateway/backends/forward/target/offered-operations.ts'
import { compilePathTemplate } from '../../../src/gateway/backends/templates/places.ts'
import { ActionTable } from '../../../src/gateway/actions/action-table.ts'
import { parsePathPattern, takes } from '../../../src/gateway/actions/path-pattern.ts'
import { decodeSegment, parseRequestTarget } from '../../../src/base/http/head/request-target.ts'
import { makeCall } from '../../support/calls.ts'
import { HOSTILE } from '../../support/hostile-segments.ts'

const AREA = 'fund-data'
/** Actions, and the paths that they are sent to. */
const ACTIONS: Readonly<Record<string, string | undefined>> = {
  report: '/v2/{business}/report',
  'report/{year:integer}': '/v2/{business}/reports/{year}.json',
  'report/{name}': '/v2/{business}/reports/{name}',
  'page/{name}': '/{fund}/page/{name}',
  'page/first': '/first/{business}',
  'split/{a}/{b}': '/v2/{business}/split/{a}-{b}',
  'both/{a}/{b}': '/both/{b}/x{a}/{b}',
  'all/{a}': '/all/{area}/{action}/{a}',
  'tenant/{a}': '/t-{business}/{version}/{a}',
  'as/{it}/is': undefined,
  'files/{path...}': '/files/{business}/{path...}',
  'v2/{name...:/[a-z-]+/}/m/{ref}': '/r/{name...}/m/{ref}',
  'twice/{p...}': '/twice/{p...}/x/{p...}',
  'keep/{p...}': undefined,
  'acts/{p...}': '/acts/{action}',
}

const table = new ActionTable<string>()
const operations = Object.entries(ACTIONS).flatMap(([action, path]) => {
  const pattern = parsePathPattern(action)
  const template = path === undefined ? undefined : compilePathTemplate(path)
  if (typeof template === 'string') throw new TypeError(template)
  return (['business', 'fund'] as const).map((level): OfferedOperation => {
    const start = level === 'fund' ? 6 : 5
    table.add(level === 'fund' ? 'f' : 'b', AREA, pattern, action)
    return {
      ...{ level, area: AREA, action, path: template, query: undefined, headers: undefined },
      pattern: pattern.map((part) =>
        part.kind === 'literal'
          ? part
          : { kind: part.kind, name: part.name, takes: (value) => takes(part.type, value) },
      ),
      isAt: ({ segments }) =>
        table.find(level === 'fund' ? 'f' : 'b', AREA, segments, start)?.value === action,
    }
  })
})

const NO_AUTHORITIES = { known: new Set<string>(), slashAllowedBelow: [] }
const PLACES = { business: '/api/1.0/b/ACME', fund: '/api/1.0/f/ACME/SUPER1' } as const
type Level = keyof typeof PLACES

/** The call of a public path, as the gateway makes it; undefined if it is no operation's. */
function callOf(level: Level, path: string) {
  const target = parseRequestTarget(path, NO_AUTHORITIES)
  const start = level === 'fund' ? 6 : 5
  const match = table.find(
    level === 'fund' ? 'f' : 'b',
    target.segments[start - 1] ?? '',
    target.segments,
    start,
  )
  const operation = operations.find((each) => each.level === level && each.action === match?.value)
  if (match === undefined || operation === undefined) return undefined
  const names = operation.pattern.flatMap((part) => (part.kind === 'literal' ? [] : [part.name]))
  const call = makeCall({
    target: path,
    action: {
      area: AREA,
      action: operation.action,
      level,
      versioned: false,
      safe: true,
      produces: undefined,
    },
    params: Object.fromEntries(names.map((name, index) => [name, match.values[index] ?? ''])),
    fund: level === 'fund' ? 'SUPER1' : undefined,
  })
  return { call, operation, sent: operation.path?.render(call) ?? target.path }
}

const asking = {
  business: callOf('business', `${PLACES.business}/${AREA}/report`)!.call,
  fund: callOf('fund', `${PLACES.fund}/${AREA}/report`)!.call,
}

const value = fc.oneof(
  fc.constantFrom(
    'first',
    '2026',
    'report',
    'a-b',
    'a.json',
    'ACME',
    'OTHER',
    'é x',
    '...',
    'x~y',
    '7.json',
    ...HOSTILE,
  ),
  fc.string({ unit: fc.constantFrom(...Array.from('aZ09-._~%/é ')), minLength: 1 }),
)
const level = fc.constantFrom<Level[]>('business', 'fund')
/** Paths that an upstream might name: near those that it is sent. */
const near = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        'files',
        'twice',
        'acts',
        'keep',
        'r',
        'm',
        'x',
        'v2',
        'ACME',
        'OTHER',
        'SUPER1',
        'report',
        'reports',
        'page',
        'first',
        'split',
        'both',
        'all',
        AREA,
        't-ACME',
        '1.0',
        'api',
        'b',
        'f',
        'as',
        'is',
        'xa',
        '7.json',
      ),
      value,
    ),
    { maxLength: 8 },
  )
  .map((segments) => `/${segments.join('/')}`)

/** What must hold of whatever a path becomes. */
function expectOwn(at: Level, path: string): string | undefined {
  const found = publicPathOf(path, asking[at], operations)
  if (found === undefined) return undefined
  expect(found.startsWith(`${PLACES[at]}/${AREA}/`)).toBe(true)
  expect(callOf(at, found)?.sent).toBe(path)
  return found
}

describe('the public path of an upstream’s path', () => {
  it('C8.8 is an operation’s at the call’s business and fund, and sent to that very path again', () => {
    fc.assert(
      fc.property(level, near, (at, path) => void expectOwn(at, path)),
      { numRuns: 2000 },
    )
  })

  it('C8.8 is that of the call that was sent there, or none: never another', () => {
    const action = fc.constantFrom(...Object.keys(ACTIONS))
    fc.assert(
      fc.property(level, action, fc.array(value, { minLength: 3, maxLength: 3 }), (at, name, values) => {
        const rest = [...values]
        const one = (): string => encodeURIComponent(rest.shift() ?? 'z')
        const path = name.replaceAll(/\{[^}]+\}/g, (part) =>
          part.includes('...') ? `${one()}/${one()}` : one(),
        )
        let sent: ReturnType<typeof callOf>
        try {
          sent = callOf(at, `${PLACES[at]}/${AREA}/${path}`)
        } catch {
          return // a path that no client gets through, or a value that is never sent
        }
        if (sent === undefined) return
        const found = expectOwn(at, sent.sent)
        if (found !== undefined)
          expect(found.split('/').map(decodeSegment)).toEqual(
            sent.call.target.segments.map(decodeSegment).toSpliced(0, 0, ''),
          )
      }),
      { numRuns: 2000 },
    )
  })

  it.each([
    ['/v2/ACME/report', 'report'],
    ['/v2/ACME/reports/x', 'report/x'],
    ['/SUPER1/page/second', 'page/second'],
    ['/first/ACME', 'page/first'],
    ['/both/b/xa/b', 'both/a/b'],
    ['/all/fund-data/all/a/a', 'all/a'],
    ['/t-ACME/1.0/a', 'tenant/a'],
    [`${PLACES.fund}/${AREA}/as/x/is`, 'as/x/is'],
    ['/files/ACME/a/b%20c/d', 'files/a/b%20c/d'],
    ['/r/a/b/m/m/7', 'v2/a/b/m/m/7'],
    ['/twice/a/b/x/a/b', 'twice/a/b'],
    [`${PLACES.fund}/${AREA}/keep/a/b`, 'keep/a/b'],
    ['/acts/acts/a/b', 'acts/a/b'],
  ])('C8.8 %s is %s', (path, action) => {
    expect(expectOwn('fund', path)).toBe(`${PLACES.fund}/${AREA}/${action}`)
  })

  it.each([
    '/files/OTHER/a',
    '/files/ACME',
    '/r/A/m/7',
    '/twice/a/b/x/a',
    '/twice/a/x/b',
    '/v2/OTHER/report',
    '/OTHER/page/x',
    '/SUPER1/page/first',
    '/v2/ACME/split/a-b',
    '/both/b/xa/c',
  ])('C8.8 %s is none', (path) => {
    expect(publicPathOf(path, asking.fund, operations)).toBe(undefined)
  })
})
