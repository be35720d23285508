import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { compileServer, serviceUrls } from '../../../src/gateway/server/schema.ts'
import { splitListenAddress } from '../../../src/base/kernel/listen-address.ts'
import { SERVER_DEFAULTS } from '../../support/listener.ts'

const problemsOf = (overrides: object): readonly string[] => {
  const problems = new Problems()
  compileServer({ ...SERVER_DEFAULTS, ...overrides }, problems)
  return problems.list.map(({ path }) => path.join('.'))
}

describe('server configuration', () => {
  it('derives the URLs from the listener, with the port that it was given', () => {
    expect(serviceUrls({ ...SERVER_DEFAULTS, listen: '127.0.0.1:0' }, 4711)).toEqual({
      authUrl: 'http://127.0.0.1:4711',
      baseUrl: 'http://127.0.0.1:4711',
    })
    expect(serviceUrls({ ...SERVER_DEFAULTS, listen: '[::1]:0', authUrl: 'https://id.example' }, 1)).toEqual({
      authUrl: 'https://id.example',
      baseUrl: 'http://[::1]:1',
    })
  })

  it('splits listen addresses, IPv6 ones too', () => {
    expect(splitListenAddress('[::1]:80')).toEqual({ host: '::1', port: 80 })
    expect(splitListenAddress('127.0.0.1:8080')).toEqual({ host: '127.0.0.1', port: 8080 })
  })

  it('refuses URLs that end in a slash and a baseUrl with a path', () => {
    expect(problemsOf({ authUrl: 'https://id.example/' })).toEqual(['server.authUrl'])
    expect(problemsOf({ baseUrl: 'https://api.example/v1' })).toEqual(['server.baseUrl'])
    expect(problemsOf({ authUrl: 'https://id.example/auth' })).toEqual([])
  })

  it('T7 refuses to trust every proxy', () => {
    expect(problemsOf({ trustedProxies: ['0.0.0.0/0'] })).toEqual(['server.trustedProxies'])
    expect(problemsOf({ trustedProxies: ['nonsense'] })).toEqual(['server.trustedProxies'])
    expect(problemsOf({ trustedProxies: ['10.0.0.0/8'] })).toEqual([])
  })

  it('refuses networks for calls to clients that are none', () => {
    expect(problemsOf({ outbound: { allow: ['10.1.0.0/33'] } })).toEqual(['server.outbound.allow'])
    expect(problemsOf({ outbound: { allow: ['intranet.example'] } })).toEqual(['server.outbound.allow'])
    expect(problemsOf({ outbound: { allow: ['10.1.0.0/16', 'fd00:1::7'] } })).toEqual([])
  })
})
