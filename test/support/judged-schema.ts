/** A JSON Schema read as a configuration is, and what it says of a value. */
import { jsonSchema } from '../../src/base/config/json-schema.ts'
import { Problems } from '../../src/base/config/problems.ts'
import { viewOf } from '../../src/base/config/schema.ts'
import { nodeOf } from '../../src/base/config/tree.ts'
import { load } from '../../src/base/config/validate.ts'
import { type NamedSchemas, SchemaLinker } from '../../src/gateway/actions/linked-schemas.ts'
import type { OperationConfig } from '../../src/gateway/actions/schema.ts'
import { type BodySchema, FORMAT_NAMES } from '../../src/base/http/body/body-schema.ts'
import type { JsonValue } from '../../src/base/http/body/json.ts'
import { compileProblems } from '../../src/base/http/body/validate-body.ts'

const BODY = viewOf(jsonSchema<BodySchema>({ formats: FORMAT_NAMES, description: 'The schema.' }))

interface Judged {
  /** The path and the message of each problem with the schema. */
  readonly problems: readonly string[]
  readonly fits: (value: JsonValue) => boolean
}

export function judge(schema: unknown, schemas: NamedSchemas = {}): Judged {
  const problems = new Problems()
  const node = nodeOf(schema, { file: 'a.yaml', line: 1 })
  const loaded = load(BODY, node, [], { environment: {}, problems }) as BodySchema | undefined
  const operation = { body: { required: true, schema: loaded } } as unknown as OperationConfig
  const { body } = problems.failed
    ? operation
    : new SchemaLinker(schemas, problems).linkOperation(operation, [])
  const told = problems.list.map(({ path, message }) => `${path.join('.')} ${message}`)
  const check = problems.failed ? undefined : compileProblems(body?.schema ?? {})
  return { problems: told, fits: (value) => check?.(value).length === 0 }
}
