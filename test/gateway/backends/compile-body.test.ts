import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { reportText } from '../../../src/base/config/problems.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const demo = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))

interface Given {
  /** Method, and what it says besides `scopes`. */
  readonly method?: string
  readonly rest?: string
  /** Of the section `upstream`. */
  readonly upstream: string
  readonly area?: string
}

const CLOSED =
  'body: { schema: { type: object, additionalProperties: false, required: [a], properties: { a: { type: string }, o: { type: object } } } }'

/** Errors about the operation, without their place up to `upstream`. */
async function told({ method = 'POST', rest = CLOSED, upstream, area = '' }: Given): Promise<string[]> {
  const file = configFiles({
    'query.graphql': 'query { a(b: "{business}") }\n',
    'a.yaml': [
      `extends: ${demo}`,
      'backends:',
      '  sample:',
      "  up: { kind: http, identity: headers, target: 'http://127.0.0.1:9' }",
      "schemas: { O: { type: object, additionalProperties: false, properties: { o: { $ref: '#/schemas/O' } } } }",
      'areas:',
      `  fund-data: { backend: up${area} }`,
      '  member-data: { backend: up }',
      'actions:',
      `  - { level: business, area: fund-data, action: fund-list, methods: { ${method}: { scopes: { any: [fund.read] }, ${rest}, upstream: { ${upstream} } } } }`,
    ].join('\n'),
  })('a.yaml')
  const text = reportText(await SETTINGS.check(file, { KEY: '{x}' }))
  return text.split('\n').flatMap((line) => {
    const at = line.indexOf('upstream')
    return at < 0 || line.includes('(warning)') ? [] : [line.slice(at + 'upstream'.length)]
  })
}

const XML = 'format: xml'
const CIRCLE = [
  'body: { schema: { type: object, additionalProperties: false, required: [a],',
  "properties: { a: { type: string }, o: { $ref: '#/schemas/O' } } } }",
].join(' ')
const nested = (levels: number): string => '{ a: '.repeat(levels) + '1' + ' }'.repeat(levels)

describe('C8.7 the check of a body', () => {
  it.each<[string, Given, string[]]>([
    ['a template', { upstream: "body: { template: { a: '{body/a}', b: [1, { c: '{body/o}' }] } }" }, []],
    [
      'a closed schema that contains itself',
      { rest: CIRCLE, upstream: `body: { ${XML}, template: { r: { o: '{body/o}' } } }` },
      [],
    ],
    ['secrets', { upstream: 'body: { template: { q: { file: query.graphql }, k: { env: KEY } } }' }, []],
    [
      '`template` beside `set`',
      { upstream: 'body: { template: {}, set: { /a: x } }' },
      ['.body.set  stands beside `template`; expected one of the two'],
    ],
    [
      'a GET',
      { method: 'GET', rest: 'versions: [1]', upstream: 'body: { template: {} }' },
      ['.body  is for a GET, and the body of a GET has no meaning'],
    ],
    [
      'an upstream HEAD',
      { rest: 'versions: [1]', upstream: 'method: GET, body: { template: {} }' },
      ['.body  is for a GET, and the body of a GET has no meaning'],
    ],
    [
      'a GET sent as POST',
      {
        method: 'GET',
        rest: 'versions: [1]',
        upstream: "method: POST, body: { template: { a: '{business}' } }",
      },
      [],
    ],
    [
      '`set` without a body of the client’s',
      { rest: 'versions: [1]', upstream: 'body: { set: { /a: x } }' },
      ['.body.set  is about the client’s body, and the operation takes none'],
    ],
    [
      '`require` without one',
      { rest: 'versions: [1]', upstream: 'body: { require: { /a: x } }' },
      ['.body.require  is about the client’s body, and the operation takes none'],
    ],
    [
      'nothing without one',
      { rest: 'versions: [1]', upstream: 'body: { type: text/x }' },
      ['.body  has no `template`, and the operation takes no body of the client’s'],
    ],
    [
      'a placeholder without one',
      { rest: 'versions: [1]', upstream: "body: { template: '{body}' }" },
      [
        '.body.template  has {body}, and fund-data/fund-list takes no body — give the operation a `body` with a `schema`',
      ],
    ],
    [
      'a path without one',
      { rest: 'versions: [1]', upstream: "path: '/{body/a}'" },
      [
        '.path  has {body/a}, and fund-data/fund-list takes no body — give the operation a `body` with a `schema`',
      ],
    ],
    [
      '`consumes`',
      { rest: 'consumes: [image/png]', upstream: 'body: { template: {} }' },
      ['.body  is for bodies that are read, and `consumes` streams them'],
    ],
    [
      'a path with `consumes`',
      { rest: 'consumes: [image/png]', upstream: "path: '/{body/a}'" },
      ['.path  has {body/a}, and fund-data/fund-list streams its body by `consumes`, unread'],
    ],
    [
      'a report-only area',
      { area: ', mode: report-only', upstream: 'body: { template: {} }' },
      ['.body  is for bodies that are checked, and a report-only area checks nothing'],
    ],
    [
      'a path in one',
      { area: ', mode: report-only', upstream: "path: '/{body/a}'" },
      [
        '.path  has {body/a}, and fund-data/fund-list is in a report-only area, where nothing of a call was checked',
      ],
    ],
    [
      '`set` to a part that may be absent',
      { upstream: "body: { set: { /x: '{body/o}' } }" },
      [expect.stringMatching(/^\.body\.set\["\/x"\] {2}has \{body\/o\}/) as string],
    ],
    ['no media type', { upstream: 'body: { type: x }' }, ['.body.type  is no media type']],
    [
      'a line feed in one',
      { upstream: 'body: { type: "a/b;c=\\"d\\ne\\"" }' },
      ['.body.type  is no media type'],
    ],
    [
      'a brace',
      { upstream: "body: { template: { a: 'x{' } }" },
      [
        '.body.template.a  has a "{" that belongs to no placeholder; expected {name}, or "{{" for the brace itself',
      ],
    ],
    [
      'an unquoted placeholder',
      { upstream: 'body: { template: { a: {business} } }' },
      [expect.stringMatching(/^\.body\.template\.a {2}.*quotes/)],
    ],
    [
      'an unknown name',
      { upstream: "body: { template: { a: '{busines}' } }" },
      ['.body.template  has {busines}, which fund-data/fund-list does not have — did you mean "business"?'],
    ],
    [
      'what is no number',
      { upstream: 'body: { template: { a: .inf } }' },
      ['.body.template.a  is no number that can be sent'],
    ],
    ['64 levels', { upstream: `body: { template: ${nested(63)} }` }, []],
    [
      '65 levels',
      { upstream: `body: { template: ${nested(64)} }` },
      [expect.stringMatching(/is nested deeper than 64 levels$/)],
    ],
    [
      '1,001 leaves',
      { upstream: `body: { template: [${'1, '.repeat(1001)}] }` },
      ['.body.template  has 1001 leaves; 1000 are allowed'],
    ],
    [
      'a list to set',
      { upstream: 'body: { set: { /a: [1] } }' },
      ['.body.set["/a"]  expected a text, a number or a boolean'],
    ],
    [
      'no pointer',
      { upstream: 'body: { set: { a: x } }' },
      ['.body.set.a  is not a possible key here: expected a JSON Pointer such as "/company"'],
    ],
    [
      'a name of nothing',
      { upstream: 'body: { require: { "/a/--": x } }' },
      [
        '.body.require["/a/--"]  has a name of nothing but white space, brackets, dots and the like, which services leave out',
      ],
    ],
    [
      'an open object in XML',
      { upstream: `body: { ${XML}, template: { a: '{body/o}' } }` },
      [
        expect.stringMatching(
          /^\.body\.template {2}puts \/o of the client’s body as it is into XML, and its schema lets a client add members/,
        ),
      ],
    ],
    [
      'a part without a schema in XML',
      { upstream: `body: { ${XML}, template: { a: '{body/x}' } }` },
      [
        expect.stringMatching(/^\.body\.template {2}puts \/x of/),
        expect.stringMatching(/^\.body\.template {2}has \{body\/x\}, which the `schema` .* does not allow/),
      ],
    ],
    ['such a part beside text', { upstream: `body: { ${XML}, template: { a: 'is {body/a}' } }` }, []],
    [
      'an open body as a form',
      { upstream: 'body: { format: form }' },
      [expect.stringMatching(/^\.body {2}puts the client’s body as it is into a form/)],
    ],
    [
      'an open body that is set in XML',
      { upstream: 'format: xml, xml: { dialect: plain }, body: { set: { /a/b: x } }' },
      [expect.stringMatching(/^\.body {2}puts the client’s body as it is into XML/)],
    ],
    [
      'two roots',
      { upstream: `body: { ${XML}, template: { a: 1, b: 2 } }` },
      [
        '.body.template  cannot be written as XML: expected an object with one member, which becomes the root element',
      ],
    ],
    [
      'a name that XML has not',
      { upstream: `body: { ${XML}, template: { 'a b': '{business}' } }` },
      ['.body.template  cannot be written as XML: "a b" is no name of an element'],
    ],
    [
      'a prefix that nobody declares',
      { upstream: `body: { ${XML}, template: { 'f:a': '{body/a}' } }` },
      ['.body.template  cannot be written as XML: the prefix of f:a is not declared'],
    ],
    [
      'null in XML',
      { upstream: `body: { ${XML}, template: { a: null } }` },
      [expect.stringMatching(/^\.body\.template {2}cannot be written as XML: .* null/)],
    ],
    [
      'a map in a form',
      { upstream: 'body: { format: form, template: { a: { b: 1 } } }' },
      [
        '.body.template  cannot be written as a form: "a" must be a text, a number or a boolean, and is an object',
      ],
    ],
    [
      'a list as a form',
      { upstream: 'body: { format: form, template: [1] }' },
      ['.body.template  cannot be written as a form: expected an object, whose members are the fields'],
    ],
  ])('%s', async (_what, given, lines) => {
    expect(await told(given)).toEqual(lines)
  })
})
