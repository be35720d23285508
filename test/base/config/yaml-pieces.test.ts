import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { yamlPieces } from '../../../src/base/config/yaml-pieces.ts'
import { readYaml, writeYaml } from '../../../src/base/config/yaml.ts'
import { largeDescription } from '../../support/large-description.ts'

function read(source: string, size: number) {
  const problems = new Problems()
  const tree = readYaml(source, 'a.yaml', problems, size)
  return { tree, problems: problems.list }
}

/** No text has twice as many letters. */
const WHOLE = 1e9

const expectSame = (source: string, sizes = [1, 20, 100, 1000]): void => {
  const whole = read(source, WHOLE)
  for (const size of sizes) expect(read(source, size)).toEqual(whole)
}

describe('C10 a long configuration', () => {
  it('C10 is the same, line by line, whether it is read whole or in pieces', () => {
    const files = globSync('config/{*,recipes/**/*,examples/*}.yaml')
    expect(files.length).toBeGreaterThan(5)
    for (const file of files) expectSame(readFileSync(file, 'utf8'))
    const large = writeYaml(largeDescription({ operations: 30, schemas: 10 }))
    expect(yamlPieces(large, 1000)?.length).toBeGreaterThan(5)
    expectSame(large, [100, 1000])
  })

  it.each([
    ['a list at the indent of its key', 'a:\n- x: 1\n- y: 2\nb: 3\n'],
    ['comments and empty lines', '# one\n\na:\n  # two\n\n  - x\n\n  # three\n  - y\n# four\nb: 1\n'],
    [
      'texts of several lines',
      'a:\n  - |\n    - x\n    b: 1\n  - "one\n    - two"\n  - z\nb: >+\n  c: 1\n\n\nc: 1\n',
    ],
    ['a section that is a text', 'a: |\n  - x\n  - y\nb:\n  c\n  d: 1\n'],
    ['a section that is repeated', 'a:\n  - x\n  - y\nb: 1\na:\n  - z\n'],
    ['a key that is repeated in a section', 'a:\n  b: 1\n  c: 2\n  d: 3\n  b: 4\n'],
    ['anchors', 'a: &x\n  - 1\n  - 2\nb: *x\n'],
    ['several documents', 'a: 1\n---\nb: 2\n'],
    ['braces without quotes', 'a:\n  - x: {name}/y\n  - y: 2\n'],
    ['what is no YAML', 'a:\n  - {x: 1,\n  - y: 2\nb: "\n'],
    ['line ends of Windows', 'a:\r\n  - x: 1\r\n  - y: 2\r\nb: 1\r\n'],
    ['explicit keys', 'a:\n  ? b\n  : c\n  d: 1\n'],
    ['JSON', '{\n"a": [1,\n2],\n"b": 3\n}\n'],
    ['a list', '- a\n- b\n- c\n'],
    ['nothing', ' \n\n# x\n'],
  ])('C10 is the same with %s', (_title, source) => expectSame(source, [1, 3, 5, 8]))

  it('C10 is the same wherever it is cut off', () => {
    const source = 'a:\n  - x: { y: "1", z: [2] }\n    t: |\n      - k: v\n  - b\nc:\n  d: 1\n  "e": \'2\'\n'
    for (let length = 0; length <= source.length; length++) expectSame(source.slice(0, length), [1, 4])
  })
})
