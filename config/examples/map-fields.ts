/**
 * A worked example of a module over a forwarder: the service calls things by other names than the API. The module
 * changes them in both directions; connections, retries, TLS and health stay the forwarder's. map-fields.yaml serves it.
 */
import type { Json, ModuleFactory } from 'postern/backend'

interface Options {
  /** By name of the API: the name that the service has for it. */
  readonly names: Readonly<Record<string, string>>
}

const createModule: ModuleFactory<Options> = ({ names }) => {
  const toService = new Map(Object.entries(names))
  const toApi = new Map(Object.entries(names).map(([own, theirs]) => [theirs, own]))
  return {
    request: ({ body }) =>
      body.kind === 'value' ? { body: { kind: 'value', value: renamed(body.value, toService) } } : undefined,
    response: async (_call, answer) => {
      // A refusal goes on as it came: it becomes what it would be without this module.
      if (answer.status !== 200) return answer
      const value = renamed(await answer.json(), toApi)
      return { headers: answer.headers, body: { kind: 'value', value } }
    },
  }
}

/** The same value with other names of members, however deep they are. */
function renamed(value: Json, names: ReadonlyMap<string, string>): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item: Json) => renamed(item, names))
  const members = Object.entries(value).map(([name, member]) => [
    names.get(name) ?? name,
    member === undefined ? member : renamed(member, names),
  ])
  return Object.fromEntries(members) as Json
}

export default createModule
