import { SETTINGS } from '../../../src/serve/start/settings.ts'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { compileBackends } from '../../../src/gateway/backends/open.ts'
import type { BackendsConfig } from '../../../src/gateway/backends/schema.ts'
import { Problems } from '../../../src/base/config/problems.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { configFiles } from '../../support/config-files.ts'

const HTTP = {
  kind: 'http',
  target: 'http://127.0.0.1:9000',
  format: 'json',
  payload: 'bare',
  timeouts: { connect: 2000, firstByte: 10_000, idle: 15_000 },
  identity: 'headers',
  strictQuery: false,
  forwardAuthorization: false,
  responseHeaders: [],
  maxConnections: 256,
  connectionAge: 60_000,
  closeDelimited: 'cut',
  retries: 1,
  ejection: { failures: 5, for: 10_000 },
  tls: { verify: 'always' },
} as const

const data = (path: string): string => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

/** @param slice may have kinds of extensions, which its type does not tell */
async function compile(slice: Readonly<Record<string, object>>) {
  const report = new Problems()
  const backends = await compileBackends(slice as BackendsConfig, report, {
    vendor: 'postern',
    clock: systemClock,
    funds: undefined,
    signer: undefined,
    targetChanged: () => undefined,
    retried: () => undefined,
    tokenChanged: () => undefined,
    moduleFailed: () => undefined,
    answerLimit: 1024,
    kinds: SETTINGS.added.kinds,
  })
  for (const backend of backends.values()) await backend.close()
  return { backends, problems: report.list.map(({ path, message }) => `${path.join('.')} ${message}`) }
}

describe('the configuration of backends', () => {
  it('opens each by its kind', async () => {
    const { backends, problems } = await compile({
      sample: { kind: 'memory', data: data('config/demo-data.json') },
      funds: HTTP,
    })
    expect(problems).toEqual([])
    expect([...backends].map(([name, { format, payload }]) => [name, format, payload])).toEqual([
      ['sample', 'value', 'bare'],
      ['funds', 'json', 'bare'],
    ])
  })

  it('tells every problem at once, by its key', async () => {
    const { backends, problems } = await compile({
      missing: { kind: 'memory', data: data('config/no-such-file.json') },
      broken: { kind: 'memory', data: data('config/demo.yaml') },
      query: { ...HTTP, target: 'http://127.0.0.1/?a=b' },
      header: { ...HTTP, responseHeaders: ['Transfer-Encoding'] },
      listed: {
        ...HTTP,
        requestHeaders: ['X-Role', 'X_Forwarded-For', 'X-Consumer-ID', 'two words', 'cookie', ''],
      },
    })
    expect(problems.map((problem) => problem.split(' ')[0]).sort()).toEqual([
      'backends.broken.data',
      'backends.header.responseHeaders.0',
      'backends.listed.requestHeaders.1',
      'backends.listed.requestHeaders.2',
      'backends.listed.requestHeaders.3',
      'backends.listed.requestHeaders.4',
      'backends.listed.requestHeaders.5',
      'backends.missing.data',
      'backends.query.target',
    ])
    expect([...backends.keys()]).toEqual(['header', 'listed'])
  })

  it('C8.1 tells what is wrong with where, and how, an upstream is reached', async () => {
    const { target, ...without } = HTTP
    const { problems } = await compile({
      both: { ...HTTP, targets: [target] },
      neither: without,
      folded: { ...without, targets: [target, 'http://127.0.0.1/a/../b', 'http://127.0.0.1/%2e'] },
      path: { ...HTTP, path: '/v2/{nothing' },
      identity: { ...HTTP, identity: 'token' },
      pair: { ...HTTP, tls: { verify: 'always', cert: data('package.json') } },
      pem: {
        ...HTTP,
        tls: {
          verify: 'always',
          ca: data('package.json'),
          key: data('package.json'),
          cert: data('package.json'),
        },
      },
    })
    expect(problems.map((problem) => problem.split(' ')[0]).sort()).toEqual([
      'backends.both.targets',
      'backends.folded.targets.1',
      'backends.folded.targets.2',
      'backends.identity.identity',
      'backends.neither',
      'backends.pair.tls',
      'backends.pair.tls',
      'backends.path.path',
      'backends.pem.tls',
    ])
  })

  it('C8.1 takes several targets, and unix sockets', async () => {
    const { target, ...without } = HTTP
    const { problems } = await compile({
      several: { ...without, targets: [target, 'https://[::1]:8443/base/', 'unix:/run/funds.sock'] },
    })
    expect(problems).toEqual([])
  })
})

describe('C8.9: the configuration of a module over a forwarder', () => {
  const { target, ...untargeted } = HTTP
  const module = (over: string, source = '{ request: () => undefined }') => ({
    kind: 'module' as const,
    file: configFiles({ 'around.mjs': `export default () => (${source})` })('around.mjs'),
    over,
    options: {},
    timeout: 1000,
    idle: 1000,
    responseHeaders: [],
  })

  it('C8.9 it has the formats of what it runs around, whatever comes first', async () => {
    const { backends, problems } = await compile({
      around: module('funds'),
      funds: { ...HTTP, format: 'xml' },
    })
    expect(problems).toEqual([])
    expect(backends.get('around')).toMatchObject({ name: 'around', format: 'xml', payload: 'bare' })
  })

  it.each([
    ['nothing', 'missing', 'names no backend: "missing"'],
    ['itself', 'around', 'names a backend that does not forward; expected one of kind http or stream'],
    ['a module', 'chain', 'names a backend that does not forward; expected one of kind http or stream'],
    ['sample data', 'sample', 'names a backend that does not forward; expected one of kind http or stream'],
  ])('C8.9 it is told with its key if `over` names %s', async (_case, over, problem) => {
    const { problems } = await compile({
      around: module(over),
      chain: module('funds'),
      sample: { kind: 'memory', data: data('config/demo-data.json') },
      funds: HTTP,
    })
    expect(problems).toEqual([`backends.around.over ${problem}`])
  })

  it('C8.9 targets of different paths are refused: what is signed must be what is sent', async () => {
    const targets = [`${target}/a`, `${target}/b`]
    const { problems } = await compile({ around: module('funds'), funds: { ...untargeted, targets } })
    expect(problems).toEqual(['backends.around.over names a backend whose targets have different paths'])
  })

  it('C8.9 a forwarder that cannot be opened is the only problem told', async () => {
    const { problems } = await compile({ around: module('funds'), funds: untargeted })
    expect(problems).toEqual(['backends.funds has no upstream; expected `target` or `targets`'])
  })

  it.each([
    ['{}', 'has none of the functions `request`, `response` and `answer`'],
    ['{ answer: () => 1, response: () => 1 }', 'has `answer` beside `request` or `response`'],
  ])('C8.9 a module that makes %s is refused', async (source, problem) => {
    const { problems } = await compile({ around: module('funds', source), funds: HTTP })
    expect(problems).toEqual([expect.stringContaining(problem)])
  })
})
