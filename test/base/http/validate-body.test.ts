import { describe, expect, it } from 'vitest'
import { type BodySchema, NOTHING } from '../../../src/base/http/body/body-schema.ts'
import { parseJson } from '../../../src/base/http/body/json.ts'
import { compileValidator } from '../../../src/base/http/body/validate-body.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'

/** What is said about a body, or `fits`. */
function said(schema: BodySchema, body: string): string {
  try {
    compileValidator(schema)(parseJson(Buffer.from(body)))
    return 'fits'
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    expect(error.code).toBe('body_invalid')
    return error.facts.say ?? ''
  }
}

const MEMBER: BodySchema = {
  type: 'object',
  additionalProperties: false,
  required: ['Code'],
  properties: {
    Code: { type: 'string', pattern: '^[A-Z]+$', minLength: 2, maxLength: 4 },
    Status: { type: 'string', enum: ['Active', 'Closed'] },
    Members: { type: 'integer', minimum: 1, maximum: 1000 },
    PersonalDetails: {
      type: 'object',
      additionalProperties: false,
      properties: { DateOfBirth: { type: 'string', format: 'date' }, Gender: { type: ['string', 'null'] } },
    },
    Tags: { type: 'array', maxItems: 2, minItems: 1, items: { type: 'string' } },
  },
}

describe('a body and the action’s schema', () => {
  it.each([
    '{"Code":"AB"}',
    '{"Code":"AB","Members":1e3,"Tags":["x"],"PersonalDetails":{"DateOfBirth":"2024-02-29","Gender":null}}',
    '{"Code":"AB","Members":1.0,"Status":"Closed"}',
  ])('C4.11 takes %s', (body) => expect(said(MEMBER, body)).toBe('fits'))

  it.each([
    ['[]', 'The body: must be an object.'],
    ['{}', 'Field Code: is required.'],
    ['{"Code":5}', 'Field Code: must be a text.'],
    ['{"Code":null}', 'Field Code: must be a text.'],
    ['{"Code":"A"}', 'Field Code: must have at least 2 characters.'],
    ['{"Code":"ABCDE"}', 'Field Code: must have at most 4 characters.'],
    ['{"Code":"ab"}', 'Field Code: must match the pattern ^[A-Z]+$.'],
    ['{"Code":"AB","Status":"Open"}', 'Field Status: must be "Active" or "Closed".'],
    ['{"Code":"AB","Members":"5"}', 'Field Members: must be a whole number.'],
    ['{"Code":"AB","Members":1.5}', 'Field Members: must be a whole number.'],
    ['{"Code":"AB","Members":1e-400}', 'Field Members: must be a whole number.'],
    ['{"Code":"AB","Members":0}', 'Field Members: must be at least 1.'],
    ['{"Code":"AB","Members":1e400}', 'Field Members: must be at most 1000.'],
    ['{"Code":"AB","Nme":"x"}', 'Field Nme: is not known here.'],
    ['{"Code":"AB","__proto__":{}}', 'Field __proto__: is not known here.'],
    ['{"Code":"AB","toString":1}', 'Field toString: is not known here.'],
    ['{"Code":"AB","PersonalDetails":{"Age":1}}', 'Field PersonalDetails.Age: is not known here.'],
    [
      '{"Code":"AB","PersonalDetails":{"DateOfBirth":"31/12/2001"}}',
      'Field PersonalDetails.DateOfBirth: must be a date like 2001-12-31.',
    ],
    ['{"Code":"AB","PersonalDetails":{"Gender":1}}', 'Field PersonalDetails.Gender: must be a text or null.'],
    ['{"Code":"AB","Tags":[]}', 'Field Tags: must have at least 1 item.'],
    ['{"Code":"AB","Tags":["x","y","z"]}', 'Field Tags: must have at most 2 items.'],
    ['{"Code":"AB","Tags":["x",2]}', 'Field Tags[1]: must be a text.'],
    ['{"Code":"AB","Tags":{"0":"x"}}', 'Field Tags: must be a list.'],
    ['{"Code":"AB","\\n\\u202e":1}', 'Field ??: is not known here.'],
    [
      '{"Tags":[1],"Members":0}',
      'Field Code: is required. Field Tags[0]: must be a text. Field Members: must be at least 1.',
    ],
  ])('C4.11 answers %s with the field and why', (body, say) => expect(said(MEMBER, body)).toBe(say))

  it('C4.11 tells no more than five problems', () => {
    const body = JSON.stringify(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i])))
    expect(said({ additionalProperties: false }, body).split('Field ')).toHaveLength(6)
  })

  it('C7.5 compares numbers by their literals', () => {
    expect(said({ maximum: 10 }, '10.00000000000000000000001')).toContain('at most 10')
    expect(said({ maximum: 9007199254740992 }, '9007199254740993')).toContain('at most')
    expect(said({ minimum: -1 }, '-1.000')).toBe('fits')
    expect(said({ minimum: 0 }, '-0')).toBe('fits')
    expect(said({ minimum: 0 }, '-1e-999')).toContain('at least 0')
    expect(said({ enum: [100, 'x'] }, '1e2')).toBe('fits')
    expect(said({ const: 1 }, '1.0')).toBe('fits')
    expect(said({ const: 1 }, '"1"')).toBe('The body: must be 1.')
    expect(said({ type: 'integer' }, '12345678901234567890.5')).toContain('whole number')
  })

  it('counts characters, not code units', () => {
    expect(said({ maxLength: 2 }, '"😀😀"')).toBe('fits')
    expect(said({ minLength: 3 }, '"😀😀"')).toContain('at least 3')
  })

  it.each<[BodySchema, string, string]>([
    [{ enum: [] }, '{}', 'The body: is not allowed here.'],
    [{ properties: { isAdmin: NOTHING } }, '{"isAdmin":true}', 'Field isAdmin: is not allowed here.'],
    [{ properties: { isAdmin: NOTHING } }, '{"other":true}', 'fits'],
    [{ items: NOTHING }, '[1]', 'Field [0]: is not allowed here.'],
    [{ items: NOTHING }, '[]', 'fits'],
    [{ const: { a: [1, 'b'], c: null } }, '{"c":null,"a":[1.0,"b"]}', 'fits'],
    [{ const: { a: [1, 'b'] } }, '{"a":["b",1]}', 'The body: must be {"a":[1,"b"]}.'],
    [{ const: { a: false } }, '{"a":0}', 'The body: must be {"a":false}.'],
    [{ enum: [[1], { a: 1 }] }, '{"a":1,"b":2}', 'The body: must be [1] or {"a":1}.'],
    [{ enum: [[1], { a: 1 }] }, '[1e0]', 'fits'],
    [{ enum: [1, 2], const: 3 }, '3', 'The body: must be 1 or 2.'],
  ])('C4.11 what is false, and what compares by value: %j of %s', (schema, body, expected) => {
    expect(said(schema, body)).toBe(expected)
    // As it crosses to a thread.
    expect(said(structuredClone(schema), body)).toBe(expected)
  })

  it('checks unknown members against a schema of their own', () => {
    expect(said({ additionalProperties: { type: 'number' } }, '{"a":1,"b":"x"}')).toBe(
      'Field b: must be a number.',
    )
  })

  it.each<[NonNullable<BodySchema['format']>, string, boolean]>([
    ['date', '2000-02-29', true],
    ['date', '1900-02-29', false],
    ['date', '2001-02-29', false],
    ['date', '2001-04-31', false],
    ['date', '2001-13-01', false],
    ['date', '2001-00-01', false],
    ['date', '2001-01-00', false],
    ['date', '2001-1-1', false],
    ['date', '2001-12-31\n', false],
    ['date', '2001-12-31T00:00:00Z', false],
    ['date-time', '2001-12-31T09:30:00Z', true],
    ['date-time', '2001-12-31t09:30:00.123+10:30', true],
    ['date-time', '2001-12-31T24:00:00Z', false],
    ['date-time', '2001-12-31T09:30:00', false],
    ['date-time', '2001-02-30T09:30:00Z', false],
    ['date-time', '2001-12-31 09:30:00Z', false],
    ['uuid', '7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f', true],
    ['uuid', '7D9F2C1E-4B3A-4F0E-9C55-0A1B2C3D4E5F', true],
    ['uuid', '{7d9f2c1e-4b3a-4f0e-9c55-0a1b2c3d4e5f}', false],
    ['uuid', '7d9f2c1e4b3a4f0e9c550a1b2c3d4e5f', false],
    ['date-time', '1998-12-31T23:59:60Z', true],
    ['date-time', '1999-01-01T05:29:60+05:30', true],
    ['date-time', '1998-12-31T15:59:60-08:00', true],
    ['date-time', '1998-12-31T22:59:60Z', false],
    ['email', '.ann@example.com', false],
    ['email', 'ann..lee@example.com', false],
    ['email', '"ann lee"@example.com', true],
    ['email', 'ann@[127.0.0.1]', true],
    ['email', 'ann@[127.0.0.300]', false],
    ['email', '@example.com', false],
    ['email', "ann.o'lee+tag@mail.example.com", true],
    ['email', 'ann@münchen.example', true],
    ['email', 'ann@localhost', false],
    ['email', 'ann@@example.com', false],
    ['email', 'ann lee@example.com', false],
    ['email', `${'a'.repeat(65)}@example.com`, false],
    ['email', `a@${'a.'.repeat(5000)}`, false],
  ])('format %s: %s is %s', (format, text, fits) =>
    expect(said({ format }, JSON.stringify(text)) === 'fits').toBe(fits),
  )
})
