import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { type NamedSchemas, SchemaLinker } from '../../../src/gateway/actions/linked-schemas.ts'
import type { OperationConfig } from '../../../src/gateway/actions/schema.ts'
import { compileProblems } from '../../../src/base/http/body/validate-body.ts'
import { readXml } from '../../../src/base/http/xml/read.ts'

const PATH = ['actions', 0, 'methods', 'PUT']

function link(schemas: unknown, schema: unknown) {
  const problems = new Problems()
  const linker = new SchemaLinker(schemas as NamedSchemas, problems)
  const config = { body: { required: true, schema } } as unknown as OperationConfig
  const linked = linker.linkOperation(config, PATH).body?.schema ?? {}
  return { linked, problems: problems.list.map(({ path, message }) => `${path.join('.')} ${message}`) }
}

const to = (name: string) => ({ $ref: `#/schemas/${name}` })

const TREE = {
  Node: {
    type: 'object',
    required: ['Name'],
    additionalProperties: false,
    properties: {
      Name: { type: 'string' },
      Count: { type: 'integer' },
      Nodes: to('Nodes'),
      Next: to('Alias'),
    },
  },
  Nodes: { type: 'array', items: to('Node') },
  Alias: to('Node'),
}

describe('C4.11 schemas with a name', () => {
  it('C4.11 hold wherever a schema refers to them, at every depth, and a body may be as deep as it likes', () => {
    const { linked, problems } = link(TREE, to('Alias'))
    expect(problems).toEqual([])
    const check = compileProblems(linked)
    const deep = { Name: 'a', Nodes: [{ Name: 'b', Next: { Name: 'c', Nodes: [] } }] }
    expect(check(deep)).toEqual([])
    expect(check({ Name: 'a', Nodes: [{ Name: 'b', Next: { Nodes: [{ Name: 1 }], More: true } }] })).toEqual([
      { field: 'Nodes[0].Next.Name', why: 'is required' },
      { field: 'Nodes[0].Next.Nodes[0].Name', why: 'must be a text' },
      { field: 'Nodes[0].Next.More', why: 'is not known here' },
    ])
  })

  it('C7.5 types what XML says as text', () => {
    const { linked } = link(TREE, to('Node'))
    const xml = '<R><Name>1</Name><Nodes><Item><Name>2</Name><Count>7</Count></Item></Nodes></R>'
    expect(readXml(Buffer.from(xml), linked)).toEqual({ Name: '1', Nodes: [{ Name: '2', Count: 7 }] })
  })

  it('C4.11 are one object for all that refer to them; a schema without references stays as it was written', () => {
    const plain = { type: 'object', properties: { Name: { type: 'string' } } }
    expect(link(TREE, plain).linked).toBe(plain)
    const { linked } = link(TREE, {
      properties: { One: to('Node') },
      items: to('Node'),
      additionalProperties: to('Node'),
    })
    expect(linked.properties?.['One']).toBe(linked.items)
    expect(linked.additionalProperties).toBe(linked.items)
    expect(linked.items?.properties?.['Next']).toBe(linked.items)
  })

  it.each([
    [to('Fnud'), 'actions.0.methods.PUT.body.schema.$ref names no schema: "Fnud"'],
    [to('__proto__'), 'actions.0.methods.PUT.body.schema.$ref names no schema'],
    [
      { properties: { a: { items: to('None') } } },
      'actions.0.methods.PUT.body.schema.properties.a.items.$ref names no schema',
    ],
    [{ $ref: '#/components/schemas/Node' }, "body.schema.$ref expected '#/schemas/NAME'"],
    [{ ...to('Node'), minItems: 1 }, 'body.schema.$ref stands alone'],
  ])('C4.11 a reference that leads nowhere is a problem where it stands: %j', (schema, problem) => {
    const { problems } = link({ ...TREE, Fund: {} }, schema)
    expect(problems).toEqual([expect.stringContaining(problem)])
  })

  it.each([
    [
      { A: to('B'), B: to('C'), C: to('B') },
      ['A', 'B', 'C'].map((name) => `schemas.${name}.$ref leads back`),
    ],
    [{ A: to('A') }, ['schemas.A.$ref leads back']],
    [{ A: to('B') }, ['schemas.A.$ref names no schema: "B"']],
  ])('C4.11 a schema with a name that cannot be is a problem, used or not: %j', (schemas, expected) => {
    const { problems } = link(schemas, { type: 'object' })
    expect(problems).toEqual(expected.map((each) => expect.stringContaining(each)))
  })
})
