import type { ActionFacts, Backend, BackendAnswer, Call, PossibleAnswers } from '../../contracts/backend.ts'
import type { FundRegistry } from '../../contracts/places.ts'
import type { JsonObject } from '../../http/json.ts'
import { Fault, type FaultCode } from '../../kernel/faults.ts'
import { readCode } from '../../config/scopes/scope-token.ts'
import { isObject, MemoryCollection } from './collection.ts'
import type { MemoryFile, MemoryRule } from './file.ts'

/** A rule with its collection found. */
interface Operation {
  readonly rule: MemoryRule
  readonly collection: MemoryCollection
}

type Verb = (
  call: Call,
  operation: Operation,
  funds: FundRegistry | undefined,
) => JsonObject | Promise<JsonObject>

const NO_DATA: JsonObject = Object.freeze(Object.create(null) as JsonObject)

const VERBS: Readonly<Record<MemoryRule['do'], Verb>> = {
  list: (call, { rule, collection }) => {
    const records = collection.list(placeOf(call, collection))
    const { as = 'Items', total, fields } = rule
    const items = fields === undefined ? [...records] : records.map((record) => pick(record, fields))
    return { [as]: items, ...(total !== undefined && { [total]: items.length }) }
  },
  read: (call, { rule, collection }) => {
    const record = collection.get(placeOf(call, collection), keyOf(call, rule))
    return rule.since === undefined ? record : without(record, rule.since, call.version)
  },
  create: async (call, { rule, collection }, funds) => {
    const place = placeOf(call, collection)
    if (rule.opensFund === true) {
      const fund = collection.create(place, givenIn(call), rule, readCode)
      await funds?.addFund(call.business, fund)
    } else collection.create(place, givenIn(call), rule, String)
    return NO_DATA
  },
  merge: (call, { rule, collection }) => {
    collection.merge(placeOf(call, collection), keyOf(call, rule), givenIn(call))
    return NO_DATA
  },
}

const VERB_FAULTS: Readonly<Record<MemoryRule['do'], readonly FaultCode[]>> = {
  list: [],
  read: ['upstream_not_found'],
  create: ['body_missing', 'body_invalid'],
  merge: ['body_missing', 'body_invalid', 'upstream_not_found'],
}

/** Codes never hold a slash (C3.4), so that no two places share a name. */
const placeOf = ({ business, fund }: Call, { per }: MemoryCollection): string =>
  per === 'business' ? business : `${business}/${fund ?? ''}`

function keyOf({ params, fund, business }: Call, { by = '' }: MemoryRule): string {
  if (Object.hasOwn(params, by)) return params[by] ?? ''
  return (by === 'fund' ? fund : by === 'business' ? business : undefined) ?? ''
}

function givenIn({ body }: Call): JsonObject {
  if (body.kind !== 'value') throw new Fault('body_missing')
  if (!isObject(body.value)) throw new Fault('body_invalid', { say: 'It must be an object.' })
  return body.value
}

function pick(record: JsonObject, names: readonly string[]): JsonObject {
  const picked: JsonObject = {}
  for (const name of names) picked[name] = record[name] ?? null
  return picked
}

const without = (record: JsonObject, since: Readonly<Record<string, number>>, version: number): JsonObject =>
  Object.fromEntries(Object.entries(record).filter(([name]) => version >= (since[name] ?? 0)))

/** A parameter's type stands in the configuration and not always in the data file: `{memberId:uuid}` is `{memberId}`. */
const withoutTypes = (action: string): string => action.replace(/\{([^:{}]+):(?:[^{}]|\{[^}]*\})*\}/g, '{$1}')

/**
 * Sample data in memory (C8.1, C10): what each action does stands in a data file, nothing of the demo in the code.
 * Writes last as long as the process.
 */
export class MemoryBackend implements Backend {
  readonly name: string
  readonly format = 'value'
  readonly payload = 'bare'
  /** It reads none, conditions neither. */
  readonly requestHeaders: ReadonlySet<string> = new Set()
  /** By `METHOD area/action`. */
  readonly #operations: ReadonlyMap<string, Operation>
  readonly #funds: FundRegistry | undefined

  /** @throws RangeError on collections that don't hold together */
  constructor(name: string, file: MemoryFile, funds?: FundRegistry) {
    this.name = name
    this.#funds = funds
    this.#operations = operationsOf(file)
  }

  answer(call: Call): Promise<BackendAnswer> {
    return Promise.try(async () => ({
      ...{ status: 200, headers: {} },
      body: { kind: 'value', value: await this.#data(call) },
    }))
  }

  possibleAnswers(action: ActionFacts, method: string): PossibleAnswers {
    const verb = this.#operationOf(action, method)?.rule.do
    return {
      successes: { other: false, notModified: false, precondition: false, ranges: false },
      faults: verb === undefined ? [] : VERB_FAULTS[verb],
      ownErrors: [],
      otherRefusals: false,
      bytes: false,
    }
  }

  #operationOf({ area, action }: ActionFacts, method: string): Operation | undefined {
    return this.#operations.get(`${method === 'HEAD' ? 'GET' : method} ${area}/${withoutTypes(action)}`)
  }

  #data(call: Call): JsonObject | Promise<JsonObject> {
    const { action, method } = call
    const operation = this.#operationOf(action, method)
    if (operation === undefined)
      throw new Fault('internal', {
        detail: `the data file says nothing of ${method} ${action.area}/${action.action}`,
      })
    return VERBS[operation.rule.do](call, operation, this.#funds)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function operationsOf({ collections, actions }: MemoryFile): ReadonlyMap<string, Operation> {
  const made = new Map(
    Object.entries(collections).map(([name, facts]) => [name, new MemoryCollection(facts)]),
  )
  const operations = new Map<string, Operation>()
  for (const [action, methods] of Object.entries(actions))
    for (const [method, rule] of Object.entries(methods)) {
      const collection = made.get(rule.collection)
      if (collection) operations.set(`${method} ${withoutTypes(action)}`, { rule, collection })
    }
  return operations
}
