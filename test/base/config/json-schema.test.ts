import { describe, expect, it } from 'vitest'
import { jsonSchema, parameterSchema } from '../../../src/base/config/json-schema.ts'
import { problemLines, Problems } from '../../../src/base/config/problems.ts'
import { mapOf, optional, section, viewOf } from '../../../src/base/config/schema.ts'
import { placeOf } from '../../../src/base/config/tree.ts'
import { load } from '../../../src/base/config/validate.ts'
import { readYaml } from '../../../src/base/config/yaml.ts'
import { FORMAT_NAMES } from '../../../src/base/http/body/body-schema.ts'

const options = { formats: FORMAT_NAMES, description: 'A schema.' }
const FILE = viewOf(
  section({
    schema: optional(jsonSchema<object>(options)),
    parameters: optional(mapOf(parameterSchema<object>(options), { description: 'Parameters.' })),
  }),
)

/** What a file becomes, and its problems without the file's name. */
function read(source: string) {
  const problems = new Problems()
  const tree = readYaml(source, 'a.yaml', problems)
  problems.locate = (path) => placeOf(tree, path)
  const value = load(FILE, tree, [], { environment: {}, problems })
  return { value, lines: problemLines(problems).map((line) => line.replace('a.yaml:', '')) }
}

const schema = (source: string) => read(`schema: ${source}`)

describe('C4.11 the schemas of a configuration', () => {
  it.each([
    ['no', 'schema  expected a schema, which is'],
    ['"false"', '"false" is a text: write false'],
    ['[]', 'got a list — one schema is for all'],
    ['7', 'schema  expected a schema, which is'],
    [
      '{ additionalProperties: no }',
      'schema.additionalProperties  expected a schema, which is a section of keywords such as `type`, or true or false, got "no" — "no" is a text: write false',
    ],
    ['{ additionalProperties: 0 }', 'schema.additionalProperties  expected a schema'],
    ['{ properties: { isAdmin: no } }', 'schema.properties.isAdmin  expected a schema'],
    ['{ properties: { isAdmin: } }', 'schema.properties.isAdmin  expected a schema'],
    ['{ properties: { name: string } }', 'got "string" — write { type: string }'],
    ['{ properties: [name] }', 'schema.properties  expected a map of schemas by name, got a list'],
    ['{ items: no }', 'schema.items  expected a schema'],
    ['{ items: [{ type: string }] }', 'schema.items  expected a schema'],
    ['{ type: [] }', 'schema.type  is an empty list, which no value fits — leave it out to allow any type'],
    ['{ type: text }', 'schema.type  expected one of "string", "integer"'],
    ['{ type: strnig }', 'did you mean "string"?'],
    ['{ type: [string, string] }', 'is in the list twice'],
    ['{ type: { string: null } }', 'schema.type  expected one of'],
    ['{ required: name }', 'schema.required  expected a list of names of members, got "name"'],
    ['{ required: [1] }', 'schema.required[0]  expected a text, got 1 — put it in quotes'],
    ['{ required: [a, a] }', 'is in the list twice'],
    [
      '{ properties: { a: { type: string, required: true } } }',
      'schema.properties.a.required  expected a list of names of members, got true — the object that contains it says `required: [a]`',
    ],
    ['{ enum: abc }', 'schema.enum  expected a list of values, got "abc" — put it in [brackets]'],
    ['{ enum: [] }', 'schema.enum  is an empty list, which no value fits'],
    ['{ enum: { a: 1 } }', 'schema.enum  expected a list of values, got a map'],
    ['{ enum: [[1, .nan]] }', 'schema.enum[0][1]  is no number of JSON: .nan'],
    [
      '{ const: 12345678901234567891 }',
      'is a number that cannot be compared exactly: 12345678901234567891 — write at most 15 digits',
    ],
    ['{ const: { a: .inf } }', 'schema.const.a  is no number of JSON: .inf'],
    ['{ minimum: abc }', 'schema.minimum  expected a number, got "abc"'],
    ['{ maximum: ten }', 'schema.maximum  expected a number, got "ten"'],
    ['{ maximum: "10" }', 'schema.maximum  expected a number, got "10" — leave out the quotes'],
    [
      '{ maximum: 9223372036854775807 }',
      'schema.maximum  is a number that cannot be compared exactly: 9223372036854775807 — write at most 15 digits',
    ],
    ['{ maximum: .inf }', 'schema.maximum  is no number of JSON: .inf'],
    ['{ maxLength: abc }', 'schema.maxLength  expected a whole number, at least 0, got "abc"'],
    ['{ minLength: -1 }', 'schema.minLength  expected a whole number, at least 0, got -1'],
    ['{ maxItems: 1.5 }', 'schema.maxItems  expected a whole number, at least 0, got 1.5'],
    ['{ minItems: true }', 'schema.minItems  expected a whole number, at least 0, got true'],
    ['{ pattern: "(" }', 'schema.pattern  expected a regular expression, got "("'],
    ['{ pattern: 5 }', 'schema.pattern  expected a text, got 5'],
    ['{ pattern: {a} }', 'schema.pattern  has a "{" outside quotes'],
    [
      '{ format: datetime }',
      'schema.format  expected one of "date", "date-time", "uuid", "email", got "datetime" — did you mean "date-time"?',
    ],
    ['{ title: 5 }', 'schema.title  expected a text, got 5'],
    ['{ description: [a] }', 'schema.description  expected a text, got a list'],
    ['{ $ref: 7 }', 'schema.$ref  expected a text, got 7'],
    ['{ $schema: http://json-schema.org/draft-07/schema# }', 'schema.$schema  names another dialect'],
    ['{ $id: a }', 'schema.$id  is not a supported keyword of JSON Schema — supported are type, required'],
    [
      '{ minLenght: 3 }',
      'schema.minLenght  is not a supported keyword of JSON Schema — did you mean "minLength"?',
    ],
    ['{ oneOf: [] }', 'schema.oneOf  is not a supported keyword'],
    [
      '{ items: { additionalProperties: { properties: { a: { toString: 1 } } } } }',
      'schema.items.additionalProperties.properties.a.toString  is not a supported keyword',
    ],
  ])('C4.11 the schema %s is a problem', (source, problem) => {
    const { lines } = schema(source)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(problem)
  })

  it('C4.11 each problem has its own line, at any depth', () => {
    const source = [
      'schema:',
      '  properties:',
      '    a:',
      '      items:',
      '        maxLength: ten',
      '    b: no',
    ]
    expect(read(source.join('\n')).lines.map((line) => line.split('  ').slice(0, 2))).toEqual([
      ['5', 'schema.properties.a.items.maxLength'],
      ['6', 'schema.properties.b'],
    ])
  })

  it('C4.11 true and false are schemas at each place', () => {
    expect(schema('true')).toEqual({ value: { schema: {} }, lines: [] })
    expect(schema('false')).toEqual({ value: { schema: { enum: [] } }, lines: [] })
    const { value, lines } = schema(
      '{ properties: { a: false, b: true }, items: false, additionalProperties: false }',
    )
    expect(lines).toEqual([])
    expect(value).toEqual({
      schema: { properties: { a: { enum: [] }, b: {} }, items: { enum: [] }, additionalProperties: false },
    })
  })

  it('C4.11 takes what is right as it is written', () => {
    const { value, lines } = schema(
      '{ $schema: "https://json-schema.org/draft/2020-12/schema", type: [object, "null"], required: [], ' +
        'properties: { __proto__: { const: null }, n: { maximum: 9007199254740991.0, minimum: 1.50 } }, ' +
        'enum: [{ a: [1, b] }], title: a }',
    )
    expect(lines).toEqual([])
    expect(JSON.stringify(value)).toBe(
      '{"schema":{"type":["object","null"],"required":[],"properties":{"__proto__":{"const":null},' +
        '"n":{"maximum":9007199254740991,"minimum":1.5}},"enum":[{"a":[1,"b"]}],"title":"a"}}',
    )
  })

  it.each([
    ['no', 'parameters.a  expected a schema'],
    ['', 'parameters.a  expected a schema'],
    ['[x]', 'parameters.a  expected a schema'],
    ['{ required: [a] }', 'parameters.a.required  is true or false here'],
    ['{ required: "yes" }', 'parameters.a.required  is true or false here'],
    ['{ oneOf: [] }', 'parameters.a.oneOf  is not a supported keyword of JSON Schema'],
    ['{ default: .nan }', 'parameters.a.default  is no number of JSON: .nan'],
    ['{ maximum: ten }', 'parameters.a.maximum  expected a number, got "ten"'],
  ])('C4.11 the parameter %s is a problem', (source, problem) => {
    const { lines } = read(`parameters:\n  a: ${source}`)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(problem)
  })
})
