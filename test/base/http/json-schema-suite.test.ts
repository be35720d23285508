import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type JsonValue, parseJson, stringifyJson } from '../../../src/base/http/body/json.ts'
import { judge } from '../../support/judged-schema.ts'
import { JSON_SCHEMA_SUITE, needing } from '../../support/machine.ts'

interface Group {
  readonly description: string
  readonly schema: JsonValue
  readonly tests: readonly {
    readonly description: string
    readonly data: JsonValue
    readonly valid: boolean
  }[]
}

/** All that is required, and what is optional of the keywords that are supported. */
function suiteFiles(): readonly string[] {
  const inFolder = (folder: string): string[] =>
    readdirSync(join(JSON_SCHEMA_SUITE, folder))
      .filter((name) => name.endsWith('.json'))
      .map((name) => join(folder, name))
  const formats = ['date', 'date-time', 'email', 'unknown', 'uuid'].map(
    (name) => `optional/format/${name}.json`,
  )
  return [...inFolder(''), ...inFolder('optional'), ...formats].sort()
}

const groupsOf = (file: string): readonly Group[] =>
  parseJson(readFileSync(join(JSON_SCHEMA_SUITE, file)), { depth: 100, nodes: 100_000 }) as never

/** The keyword that is refused, without the place where it stands. */
const reasonOf = (problem: string): string =>
  problem.replace(/^(?:\S*\.)?([^\s.]+) (.*?)(?:: ".*)?$/, '$1 $2')

/** `additionalProperties: 4 agree; refused: 1 × allOf is not …` */
function resultOf(file: string): string {
  let agreeing = 0
  const refused = new Map<string, number>()
  const wrong: string[] = []
  for (const { description, schema, tests } of groupsOf(file)) {
    const { problems, fits } = judge(JSON.parse(stringifyJson(schema)))
    const [problem] = problems
    if (problem !== undefined) {
      refused.set(reasonOf(problem), (refused.get(reasonOf(problem)) ?? 0) + 1)
      continue
    }
    const failed = tests.filter(({ data, valid }) => fits(data) !== valid)
    wrong.push(...failed.map((test) => `${description}: ${test.description}`))
    if (failed.length === 0) agreeing += 1
  }
  const counted = [...refused].sort().map(([reason, count]) => `${count} × ${reason}`)
  return [`${agreeing} agree`, ...counted, ...wrong.map((each) => `WRONG ${each}`)].join('; ')
}

describe('C4.11 JSON-Schema-Test-Suite, draft 2020-12', needing('json-schema-suite'), () => {
  it('C4.11 each group of the suite is judged as it says, or its schema is refused at load, and counted by name', () => {
    const results = Object.fromEntries(suiteFiles().map((file) => [file, resultOf(file)]))
    expect(Object.values(results).filter((result) => result.includes('WRONG'))).toEqual([])
    expect(results).toMatchSnapshot()
  })
})
