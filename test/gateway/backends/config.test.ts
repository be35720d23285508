import { describe, expect, it } from 'vitest'
import { compile, data, HTTP } from '../../support/compiled-backends.ts'

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
