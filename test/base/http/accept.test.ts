import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileNegotiation, type AcceptLines } from '../../../src/base/http/head/accept.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { anyText } from '../../support/any-text.ts'

const JSON_TYPE = 'application/json'
const XML_TYPE = 'application/xml'
const vendor = (version: string, suffix = 'json'): string =>
  `application/vnd.postern.action.v${version}+${suffix}`

const negotiation = compileNegotiation({ vendor: 'postern', defaultFormat: 'json' })
const ACTION = { versions: [1, 2], defaultVersion: 1 }

/** `v2 application/json; charset=utf-8`, or the code of the fault. */
function outcome(work: () => string): string {
  try {
    return work()
  } catch (error) {
    if (error instanceof Fault) return error.code
    throw error
  }
}
const negotiated = (accept: AcceptLines): string =>
  outcome(() => {
    const { format, version, contentType } = negotiation.negotiate(accept, ACTION)
    expect(contentType).toContain(format)
    return `${version} ${contentType.replace('; charset=utf-8', '')}`
  })
const own = (accept: AcceptLines, ...produces: string[]): string =>
  outcome(() => negotiation.negotiateOwn(accept, produces))
const userinfo = (accept: AcceptLines): string =>
  outcome(() => {
    negotiation.requireJson(accept)
    return 'json'
  })

const plainJson = `1 ${JSON_TYPE}`
const plainXml = `1 ${XML_TYPE}`

describe('what Accept asks for', () => {
  it.each<[string, AcceptLines, string]>([
    ['no header is the default', undefined, plainJson],
    ['no lines are the default', [], plainJson],
    ['an empty header is the default', '', plainJson],
    ['white space is the default', ' \t ', plainJson],
    ['a list of empty members is the default', ' , ,', plainJson],
    ['*/* is the default', '*/*', plainJson],
    ['application/* is the default', 'application/*', plainJson],
    ['JSON', JSON_TYPE, plainJson],
    ['XML', XML_TYPE, plainXml],
    ['any case', 'APPLICATION/Xml', plainXml],
    ['white space around members', ` \t${XML_TYPE}\t ,, `, plainXml],
    ['the first of equals', `${XML_TYPE}, ${JSON_TYPE}`, plainXml],
    ['the higher q', `${XML_TYPE};q=0.5, ${JSON_TYPE};q=0.6`, plainJson],
    ['three decimals of q', `${JSON_TYPE};q=0.998, ${XML_TYPE};q=0.999`, plainXml],
    ['an upper-case Q', `${JSON_TYPE};Q=0.1, ${XML_TYPE}`, plainXml],
    ['q between white space', `${JSON_TYPE} \t; \tq=0.1, ${XML_TYPE} ;q=0.2`, plainXml],
    ['q with a bare dot', `${JSON_TYPE};q=0., ${XML_TYPE};q=1.`, plainXml],
    ['the more specific of equal q', `*/*, application/*, ${XML_TYPE}`, plainXml],
    ['all lines', ['text/html', XML_TYPE], plainXml],
    ['several lines in order', [XML_TYPE, JSON_TYPE], plainXml],
    ['a browser', 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', plainXml],
    ['a quoted comma', `${XML_TYPE};x="a,application/json", ${JSON_TYPE};q=0.5`, plainXml],
    ['a quoted semicolon', `${XML_TYPE};x=";q=0", ${JSON_TYPE};q=0.5`, plainXml],
    ['a quoted quote', `${XML_TYPE};x="\\",application/json;q=", ${JSON_TYPE};q=0.5`, plainXml],
    ['other parameters ignored', `${XML_TYPE};indent=4;a=1;a=2`, plainXml],
    ['an empty parameter', `${XML_TYPE};;`, plainXml],
    ['parameters after q', `${XML_TYPE};q=1;x=y, ${JSON_TYPE};q=0.5`, plainXml],
  ])('C7.2 takes %s', (_, accept, expected) => expect(negotiated(accept)).toBe(expected))

  it.each<[string, AcceptLines, string]>([
    ['leaves XML to a wildcard', `${JSON_TYPE};q=0, */*`, plainXml],
    ['leaves JSON to a wildcard', `${XML_TYPE};q=0, application/*;q=0.1`, plainJson],
    ['with 0.000', `${JSON_TYPE};q=0.000, */*`, plainXml],
    ['outranks a second mention', `${JSON_TYPE}, ${JSON_TYPE};q=0`, 'not_acceptable'],
    ['of everything', '*/*;q=0', 'not_acceptable'],
    ['of the application types is closer than any', 'application/*;q=0, */*', 'not_acceptable'],
    ['of all but JSON', `*/*;q=0, ${JSON_TYPE};q=0.1`, plainJson],
    ['of a vendor type', `${vendor('1')};q=0`, 'not_acceptable'],
    ['of a vendor type beside itself', `${vendor('1')};q=0, ${vendor('1')}`, 'not_acceptable'],
    ['of an unknown version is not a wish for it', `${vendor('9')};q=0`, 'not_acceptable'],
    ['of a vendor type leaves the plain one', `${vendor('1')};q=0, */*`, plainJson],
  ])('C7.2 q=0 excludes: %s', (_, accept, expected) => expect(negotiated(accept)).toBe(expected))

  it('C7.2 lets the closest range set the q of a type', () => {
    expect(negotiated(`${JSON_TYPE};q=0.2, */*;q=0.8`)).toBe(plainXml)
    expect(negotiated(`${JSON_TYPE};q=0.2, application/*;q=0.1, ${XML_TYPE};q=0.15`)).toBe(plainJson)
  })

  it.each(['iso-8859-1', 'utf-16', 'utf8', '""'])('C7.2 does not match with charset=%s', (charset) => {
    expect(negotiated(`${XML_TYPE};charset=${charset}`)).toBe('not_acceptable')
    expect(negotiated(`${XML_TYPE};charset=${charset}, ${JSON_TYPE};q=0.1`)).toBe(plainJson)
    expect(negotiated(`${vendor('9')};charset=${charset}`)).toBe('not_acceptable')
  })

  it.each(['utf-8', 'UTF-8', '"Utf-8"', '"\\utf-8"'])('C7.2 matches with charset=%s', (charset) =>
    expect(negotiated(`${XML_TYPE};charset=${charset}`)).toBe(plainXml),
  )

  it.each([
    'q=1.5',
    'q=-1',
    'q=0.1234',
    'q=1.001',
    'q=',
    'q',
    'q=abc',
    'q="0.5"',
    'q=.5',
    'q= 1',
    'q=1 0',
    'q=01',
    'q=0.5;q=0.5',
    'x="open',
    'x=a b',
    '=x',
    'é',
    'x="\u0000"',
    '\u000b',
  ])('C7.2 skips a member with %j', (parameter) => {
    expect(negotiated(`${XML_TYPE};${parameter}`)).toBe('not_acceptable')
    expect(negotiated([`${XML_TYPE};${parameter}`, `${JSON_TYPE};q=0.001`])).toBe(plainJson)
  })

  it.each([
    'json',
    '/',
    'application/',
    '/json',
    'application /json',
    'a/b/c',
    'application/json xml',
    '(a)/b',
    '*',
  ])('C7.2 skips the malformed member %j, and refuses if no other is left', (member) => {
    expect(negotiated(member)).toBe('not_acceptable')
    expect(negotiated(`${member}, ${XML_TYPE}`)).toBe(plainXml)
  })

  it.each([
    'text/html',
    'text/xml',
    'text/*',
    'application/xhtml+xml',
    'application/jsonx',
    '*/json',
    'application/*+json',
  ])('C7.2 has no %s', (type) => expect(negotiated(type)).toBe('not_acceptable'))

  it('C7.2 falls back on the configured default', () => {
    const xmlFirst = compileNegotiation({ vendor: 'postern', defaultFormat: 'xml' })
    for (const accept of [undefined, '', '*/*', 'application/*', 'text/html, */*;q=0.1'])
      expect(xmlFirst.negotiate(accept, ACTION).format).toBe('xml')
    expect(xmlFirst.negotiate(`*/*, ${JSON_TYPE}`, ACTION).format).toBe('json')
  })
})

describe('action versions', () => {
  it.each<[string, AcceptLines, string]>([
    ['its version', vendor('2'), `2 ${vendor('2')}`],
    ['XML', vendor('1', 'xml'), `1 ${vendor('1', 'xml')}`],
    ['any case, answered in lower case', vendor('2').toUpperCase(), `2 ${vendor('2')}`],
    ['parameters, not echoed', `${vendor('2')};x=y;charset=UTF-8`, `2 ${vendor('2')}`],
    ['the higher q', `${vendor('1')};q=0.5, ${vendor('2')}`, `2 ${vendor('2')}`],
    ['the first of equals', `${vendor('2')}, ${vendor('1')}, ${JSON_TYPE}`, `2 ${vendor('2')}`],
    ['a plain type before it', `${XML_TYPE}, ${vendor('2')}`, plainXml],
    ['it before a wildcard', `*/*, ${vendor('2')}`, `2 ${vendor('2')}`],
  ])('C7.3 negotiates a vendor type: %s', (_, accept, expected) => expect(negotiated(accept)).toBe(expected))

  it.each(['9', '0', '007', '01', '1.5', '', 'x', '-1', '+1', '1e0', ' 1', '99999999999999999999999'])(
    'C7.3 passes over version %j, and answers 501 if nothing else is wanted',
    (version) => {
      const wanted = vendor(version)
      const readable = !version.includes(' ') && !version.includes('+')
      expect(negotiated(wanted)).toBe(readable ? 'unknown_action_version' : 'not_acceptable')
      expect(negotiated(`${wanted}, ${XML_TYPE};q=0.1`)).toBe(plainXml)
      expect(negotiated(`${wanted}, text/html`)).toBe(readable ? 'unknown_action_version' : 'not_acceptable')
    },
  )

  it.each([
    'application/vnd.other.action.v1+json',
    'application/vnd.postern.action.v1+yaml',
    'text/vnd.postern.action.v1+json',
    'application/vnd.postern.action.v1',
    'application/vnd.postern.action+json',
    'application/vnd.postern.v1+json',
    'application/vnd.posternx.action.v1+json',
    'application/vnd.postern.action.v1+json+xml',
  ])('C7.3 answers 406 to %s', (type) => expect(negotiated(type)).toBe('not_acceptable'))

  it('C7.3 answers those who ask for no version in the default version', () => {
    expect(negotiation.negotiate('*/*', { versions: [2, 3], defaultVersion: 3 }).version).toBe(3)
  })

  it('C7.1 compares the vendor in any case and takes it literally', () => {
    const dotted = compileNegotiation({ vendor: 'Ac.Me', defaultFormat: 'json' })
    expect(dotted.negotiate('application/vnd.ac.me.action.v1+json', ACTION).version).toBe(1)
    expect(() => dotted.negotiate('application/vnd.acxme.action.v1+json', ACTION)).toThrow(Fault)
  })
})

describe('the format of an error', () => {
  it.each<[AcceptLines, string]>([
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['text/html', 'json'],
    [XML_TYPE, 'xml'],
    [`text/html, ${XML_TYPE};q=0.1`, 'xml'],
    [`*/*, ${XML_TYPE};q=0.1`, 'xml'],
    [`${JSON_TYPE};q=0.1, ${XML_TYPE};q=0.2`, 'xml'],
    [`${JSON_TYPE}, ${XML_TYPE}`, 'json'],
    [`${XML_TYPE};q=0`, 'json'],
    [`${JSON_TYPE};q=0, */*`, 'json'],
    [vendor('999', 'xml'), 'xml'],
    [vendor('x', 'XML'), 'xml'],
    ['application/vnd.other.action.v1+xml', 'json'],
    [`application/vnd.other.action.v1+xml, ${JSON_TYPE};q=0.1`, 'json'],
    [`${XML_TYPE};q=1.5`, 'json'],
    [`${XML_TYPE};charset=utf-16`, 'xml'],
    [['text/html', XML_TYPE], 'xml'],
  ])('C2.4 follows %j: %s', (accept, format) => expect(negotiation.formatOfErrors(accept)).toBe(format))

  it('C2.4 is known for any header whatever', () => {
    fc.assert(
      fc.property(fc.oneof(anyText(), fc.array(fc.string())), (accept) => {
        expect(['json', 'xml']).toContain(negotiation.formatOfErrors(accept))
        negotiated(accept)
        own(accept, 'text/csv', 'image/*')
      }),
    )
  })
})

describe('types of an action’s own', () => {
  it.each<[AcceptLines, string[], string]>([
    [undefined, ['text/event-stream'], 'text/event-stream'],
    ['*/*', ['text/csv', 'application/pdf'], 'text/csv'],
    ['application/pdf, text/*;q=0.5', ['text/csv', 'application/pdf'], 'application/pdf'],
    ['text/*, application/pdf', ['text/csv', 'application/pdf'], 'application/pdf'],
    ['TEXT/CSV;header=present', ['text/csv'], 'text/csv'],
    ['text/csv;q=0, */*', ['text/csv'], 'not_acceptable'],
    [JSON_TYPE, ['text/event-stream'], 'not_acceptable'],
    ['text/event-stream', ['Text/Event-Stream; charset=utf-8'], 'Text/Event-Stream; charset=utf-8'],
    ['image/png', ['image/*'], 'image/png'],
    ['image/*', ['image/*'], 'image/*'],
    ['image/png;q=0.1, */*', ['image/*'], 'image/*'],
    ['image/png;q=0', ['image/*'], 'not_acceptable'],
    ['image/png;q=0, image/png', ['image/*'], 'not_acceptable'],
    ['text/html', ['*/*'], 'text/html'],
  ])('C7.1 %j of %j is %s', (accept, produces, expected) => expect(own(accept, ...produces)).toBe(expected))
})

describe('userinfo', () => {
  it.each<[AcceptLines, string]>([
    [undefined, 'json'],
    ['*/*', 'json'],
    [JSON_TYPE, 'json'],
    [`${XML_TYPE}, ${JSON_TYPE};q=0.1`, 'json'],
    [vendor('1'), 'json'],
    [vendor('2'), 'unknown_action_version'],
    [`${vendor('2')}, */*;q=0.1`, 'json'],
    [vendor('2', 'xml'), 'not_acceptable'],
    [vendor('1', 'xml'), 'not_acceptable'],
    [XML_TYPE, 'not_acceptable'],
    [`${JSON_TYPE};q=0, */*`, 'not_acceptable'],
    [`${JSON_TYPE};q=0, ${vendor('1')}`, 'json'],
  ])('C6.3.1 %j: %s', (accept, expected) => expect(userinfo(accept)).toBe(expected))
})

describe('hostile Accept headers', () => {
  it('T4.1 reads 64 KiB of any of these in linear time', () => {
    for (const piece of [
      ',',
      ';',
      '"',
      '\\',
      ' ',
      'a/b,',
      `${vendor('9')};q=0,`,
      `${vendor('9')},`,
      'a/b;"',
      ';x="',
      ';a=b',
    ]) {
      const header = `a/b${piece.repeat(65_536 / piece.length)}`
      negotiation.formatOfErrors(header)
    }
  })
})
