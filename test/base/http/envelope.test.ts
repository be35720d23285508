import { describe, expect, it } from 'vitest'
import { Fault, type FaultCode } from '../../../src/base/kernel/faults.ts'
import { FAULTS } from '../../../src/base/kernel/fault-table.ts'
import {
  errorEnvelope,
  errorsEnvelope,
  errorsOf,
  isEnvelope,
  renderFault,
  successEnvelope,
  wrapPayload,
} from '../../../src/base/http/envelope.ts'
import type { JsonObject, JsonValue } from '../../../src/base/http/body/json.ts'
import { ENVELOPE_SCHEMA, readXml } from '../../../src/base/http/xml/read.ts'

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const codes = Object.keys(FAULTS) as FaultCode[]

describe('envelopes', () => {
  it('C2.1 C2.2 says a success in both formats', () => {
    expect(successEnvelope('json', { A: [1] }).toString()).toBe('{"Errors":[],"Data":{"A":[1]}}')
    expect(successEnvelope('xml', { A: ['x'] }, { A: 'B' }).toString()).toBe(
      '<?xml version="1.0" encoding="UTF-8"?><ApiResponse><Errors/>' +
        '<Data><A type="array"><B>x</B></A></Data></ApiResponse>',
    )
  })

  it('C2.1 C2.2 says a failure in both formats', () => {
    expect(errorEnvelope('json', 'A', 'é "b"').toString()).toBe(
      '{"Errors":[{"Code":"A","Message":"é \\"b\\""}],"Data":{}}',
    )
    expect(errorEnvelope('xml', 'A', 'é <b>').toString()).toBe(
      '<?xml version="1.0" encoding="UTF-8"?><ApiResponse><Errors><Error><Code>A</Code>' +
        '<Message>é &lt;b&gt;</Message></Error></Errors><Data/></ApiResponse>',
    )
  })

  it('C8.4 says several errors, in order', () => {
    const errors = [
      { code: 'A', message: 'a' },
      { code: 'B', message: 'b' },
    ]
    const value = {
      Errors: [
        { Code: 'A', Message: 'a' },
        { Code: 'B', Message: 'b' },
      ],
      Data: {},
    }
    expect(JSON.parse(errorsEnvelope('json', errors).toString())).toEqual(value)
    expect(plain(readXml(errorsEnvelope('xml', errors), ENVELOPE_SCHEMA))).toEqual(value)
  })

  it('C2.3 can say every message in XML: what it cannot hold becomes U+FFFD', () => {
    const value = readXml(errorEnvelope('xml', 'A', 'a\0b\uD800c'), ENVELOPE_SCHEMA)
    expect(errorsOf(value)).toEqual([{ code: 'A', message: 'a\u{FFFD}b\u{FFFD}c' }])
  })

  it('T4.5 answers 500 for data that cannot be written', () => {
    const cyclic: JsonObject = {}
    cyclic.self = cyclic
    const unconvertible = expect.objectContaining({ code: 'answer_unconvertible' })
    for (const format of ['json', 'xml'] as const)
      expect(() => successEnvelope(format, cyclic)).toThrow(unconvertible)
  })
})

describe('faults as envelopes', () => {
  it.each(codes)('C2.6 says %s in both formats, from the table', (code) => {
    const fault = new Fault(code, { detail: 'secret detail', cause: new Error('secret cause') })
    const { wire, text, status } = FAULTS[code]
    const expected = [{ code: wire, message: text }]
    const [json, xml] = [renderFault(fault, 'json'), renderFault(fault, 'xml')]
    expect([json.status, xml.status]).toEqual([status, status])
    expect(json.contentType).toBe('application/json; charset=utf-8')
    expect(xml.contentType).toBe('application/xml; charset=utf-8')
    expect(errorsOf(JSON.parse(json.body.toString()) as JsonValue)).toEqual(expected)
    expect(errorsOf(readXml(xml.body, ENVELOPE_SCHEMA))).toEqual(expected)
  })

  it('C2.6 renders a row once', () => {
    const [first, second] = [new Fault('invalid_token'), new Fault('invalid_token', { detail: 'other' })]
    expect(renderFault(first, 'xml').body).toBe(renderFault(second, 'xml').body)
  })

  it('C2.6 adds which field and why to a 400, and to nothing else', () => {
    const say = 'Field Code: is <required>.'
    for (const format of ['json', 'xml'] as const) {
      const bad = renderFault(new Fault('body_invalid', { say }), format).body.toString()
      expect(bad).toContain(format === 'json' ? say : 'Field Code: is &lt;required&gt;.')
      expect(renderFault(new Fault('internal', { say }), format).body.toString()).not.toContain('required')
    }
  })

  it('C8.4 keeps the status of an upstream’s 4xx that has no row of its own', () => {
    const fault = new Fault('upstream_refused', { status: 409 })
    expect(renderFault(fault, 'json').status).toBe(409)
    expect(renderFault(fault, 'json').body.toString()).toContain('API_BAD_REQUEST')
  })
})

describe('payloads', () => {
  it.each<[JsonValue, JsonObject]>([
    [{ a: 1 }, { a: 1 }],
    [{}, {}],
    [[1, 2], { Items: [1, 2] }],
    [[], { Items: [] }],
    ['x', { Value: 'x' }],
    [0, { Value: 0 }],
    [false, { Value: false }],
    [null, {}],
  ])('C8.6 wraps %j', (payload, data) => expect(wrapPayload(payload)).toEqual(data))

  it('C8.6 wraps a number that kept its literal as a scalar', () => {
    expect(successEnvelope('json', wrapPayload(JSON.rawJSON('1.0'))).toString()).toBe(
      '{"Errors":[],"Data":{"Value":1.0}}',
    )
  })

  const entry = { Code: 'A', Message: 'b' }

  it.each<[JsonValue]>([
    [{ Errors: [], Data: {} }],
    [{ Errors: [entry], Data: {} }],
    [{ Errors: [], Data: { a: [1] } }],
    [{ Errors: [{ ...entry, Field: 'c' }], Data: {}, Meta: 1 }],
  ])('C2.1 takes %j for an envelope', (value) => expect(isEnvelope(value)).toBe(true))

  it.each<[JsonValue]>([
    [null],
    ['x'],
    [[]],
    [JSON.rawJSON('1.0')],
    [{}],
    [{ Errors: [] }],
    [{ Data: {} }],
    [{ Errors: {}, Data: {} }],
    [{ Errors: [], Data: [] }],
    [{ Errors: [], Data: null }],
    [{ Errors: [], Data: JSON.rawJSON('1') }],
    [{ Errors: ['x'], Data: {} }],
    [{ Errors: [null], Data: {} }],
    [{ Errors: [{ Code: 'A' }], Data: {} }],
    [{ Errors: [{ Code: 1, Message: 'b' }], Data: {} }],
    [{ errors: [], data: {} }],
    [Object.create({ Errors: [], Data: {} }) as JsonObject],
  ])('C2.1 takes %j for something else', (value) => expect(isEnvelope(value)).toBe(false))

  it('C8.4 finds errors in a well-formed envelope that has at least one', () => {
    expect(errorsOf({ Errors: [{ ...entry, Trace: 'secret' }], Data: { a: 1 } })).toEqual([
      { code: 'A', message: 'b' },
    ])
    expect(errorsOf({ Errors: [], Data: {} })).toBeUndefined()
    expect(errorsOf({ Errors: [entry] })).toBeUndefined()
    expect(errorsOf('x')).toBeUndefined()
  })
})
