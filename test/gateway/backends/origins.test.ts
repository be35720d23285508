import { describe, expect, it } from 'vitest'
import {
  parseOriginPattern,
  parseTargetValue,
  problemsOfValues,
  targetValuesOf,
} from '../../../src/gateway/backends/forward/schema/origins.ts'

function patterns(...texts: readonly string[]) {
  return texts.map((text) => {
    const parsed = parseOriginPattern(text)
    if (typeof parsed === 'string') throw new Error(parsed)
    return parsed
  })
}

const addressOf = (text: string, ...origins: readonly string[]) =>
  parseTargetValue(text, patterns(...origins))

describe('C8.7 a target that is a value of a business', () => {
  it.each([
    ['https://acme.erp.internal', 'https://*.erp.internal', 'https://acme.erp.internal', ''],
    ['https://ACME.ERP.internal', 'https://*.erp.internal', 'https://acme.erp.internal', ''],
    ['https://acme.erp.internal:443/', 'https://*.erp.internal', 'https://acme.erp.internal', ''],
    ['https://acme.erp.internal', 'https://*.erp.internal:443', 'https://acme.erp.internal', ''],
    ['https://erp.internal:8443/v2/acme', 'https://erp.internal:*', 'https://erp.internal:8443', '/v2/acme'],
    ['https://erp.internal/', 'https://erp.internal:*', 'https://erp.internal', ''],
    ['http://a.b.erp.internal', 'http://*.*.erp.internal', 'http://a.b.erp.internal', ''],
    ['http://eu.acme.example', 'http://eu.*.example', 'http://eu.acme.example', ''],
    ['http://10.0.0.7:81', 'http://10.0.0.7:*', 'http://10.0.0.7:81', ''],
    ['http://[::1]:81/x/', 'http://[::1]:81', 'http://[::1]:81', '/x'],
    ['https://bücher.erp.internal', 'https://*.erp.internal', 'https://xn--bcher-kva.erp.internal', ''],
    ['https://ａｃｍｅ。erp.internal', 'https://*.erp.internal', 'https://acme.erp.internal', ''],
  ])('C8.7 may be %s within %s', (text, origin, parsed, basePath) => {
    expect(addressOf(text, origin)).toMatchObject({ origin: parsed, basePath })
  })

  it.each([
    'https://evil.example',
    'https://erp.internal',
    'https://a.b.erp.internal',
    'https://.erp.internal',
    'https://acme.erp.internal.',
    'https://acme.erp.internal.evil.example',
    'https://acme.erp.internal:8443',
    'http://acme.erp.internal',
    'ftp://acme.erp.internal',
    'https://acme.erp.internal@evil.example',
    'https://evil.example@acme.erp.internal',
    'https://:@acme.erp.internal',
    'https://evil.example\\.erp.internal',
    'https:\\\\acme.erp.internal',
    'https://evil.example\\@acme.erp.internal',
    'https://evil.example#.erp.internal',
    'https://evil.example?.erp.internal',
    'https://evil.example/.erp.internal',
    'https://evil.example%2f.erp.internal',
    'https://evil.example／.erp.internal',
    'https://evil.example＃.erp.internal',
    'https://evil.example：443＠acme.erp.internal',
    'https://ev\til.erp.internal',
    'https://acme.erp.internal\n',
    ' https://acme.erp.internal',
    'https://acme.erp.internal\0',
    'https://acme.erp.internal/a?b',
    'https://acme.erp.internal/a#b',
    'https://acme.erp.internal/#',
    'https://acme.erp.internal/?',
    'https://acme.erp.internal/../b',
    'https://acme.erp.internal/a/..',
    'https://acme.erp.internal/a%2f..',
    'https://acme.erp.internal/a\\b',
    'https://acme.erp.internal/a;b',
    'https://acme.erp.internal//b',
    'https:acme.erp.internal',
    'https:/acme.erp.internal',
    'HTTPS://acme.erp.internal',
    'https:///acme.erp.internal',
    '//acme.erp.internal',
    'acme.erp.internal',
    'unix:/run/x.sock',
    'file:///etc/passwd',
    'data:,x',
    'https://acme.erp.internal:0x1bb',
    'https://acme.erp.internal:99999',
    'https://acme.еrp.internal',
    '',
    '{business.url}',
  ])('T2.14 never leads out of its origins: %j', (text) => {
    expect(addressOf(text, 'https://*.erp.internal')).toBeTypeOf('string')
  })

  it.each([
    'http://127.0.0.1',
    'http://2130706433',
    'http://0x7f.1',
    'http://0177.0.0.1',
    'http://127.1',
    'http://１２７.0.0.1',
    'http://[::1]',
    'http://[::ffff:127.0.0.1]',
    'http://169.254.169.254',
  ])('T2.14 is no IP address where a name may be: %s', (text) => {
    expect(addressOf(text, 'http://*', 'http://*.*.*', 'http://*.*.internal', 'http://*:*')).toBeTypeOf(
      'string',
    )
  })

  it('T2.14 does not tell the value in what is wrong with it', () => {
    for (const text of ['https://secret.example', 'secret', 'https://secret@x'])
      expect(addressOf(text, 'https://*.erp.internal')).not.toContain('secret')
  })

  it.each([
    'https://*.*.*.*',
    'https://10.0.0.*',
    'https://10.*.0.1:80',
    'https://a*.erp.internal',
    'https://*a.erp.internal',
    'https://erp.internal.',
    'https://erp..internal',
    'https://erp.internal/path',
    'https://erp.internal:*1',
    'https://erp.internal:70000',
    'https://0x7f.1',
    'https://u@erp.internal',
    '*://erp.internal',
    'https://[*::1]',
    'https://bücher.example',
    'unix:/x',
    '*',
    '',
  ])('C8.7 `origins` refuses %j', (text) => {
    expect(parseOriginPattern(text)).toBeTypeOf('string')
  })

  it('C8.7 is judged for each backend that takes it as its target', () => {
    const values = targetValuesOf({
      erp: { kind: 'http', target: '{business.url}', origins: ['https://*.erp.internal'] },
      crm: { kind: 'stream', target: '{business.crm-url}', origins: ['https://crm.internal:*'] },
      written: { kind: 'http', target: 'https://fixed.internal' },
      memory: { kind: 'memory', data: 'x' },
    })
    expect(values.map(({ name, backend }) => [name, backend])).toEqual([
      ['url', 'erp'],
      ['crm-url', 'crm'],
    ])
    const good = { url: 'https://a.erp.internal', 'crm-url': 'https://crm.internal:1', other: 'x' }
    expect(problemsOfValues(values, good)).toEqual([])
    expect(problemsOfValues(values, {})).toEqual([])
    expect(problemsOfValues(values, { ...good, url: 'https://b.example' })).toEqual([
      ['url', 'is of an origin that `origins` does not list: the backend erp takes it as its target'],
    ])
  })
})
