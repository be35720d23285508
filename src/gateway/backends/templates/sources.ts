/** What placeholders stand for in a call (C8.7). */
import type { Call } from '../../../base/contracts/calls/backend.ts'
import type { BusinessValues } from '../../../base/contracts/people/places.ts'
import type { Placeholder, TemplateReference } from '../../../base/contracts/calls/templates.ts'
import { type JsonValue, pointerText, scalarText } from '../../../base/http/body/json.ts'
import { decodeSegment } from '../../../base/http/head/request-target.ts'
import { Fault } from '../../../base/kernel/faults.ts'

/** Index of the action's first segment in `/api/{version}/b/{business}/{area}/…` and `/api/{version}/f/{business}/{fund}/{area}/…`. */
const ACTION_AT = { business: 5, fund: 6 } as const

export const actionSegments = ({ target, action }: Call): readonly string[] =>
  target.segments.slice(ACTION_AT[action.level])

type FindText = (call: Call) => string | undefined
type FindValue = (call: Call) => JsonValue | undefined

/** What the built-in names stand for, decoded. */
export const BUILT_IN: Readonly<Record<string, FindText>> = {
  business: ({ business }) => business,
  fund: ({ fund }) => fund,
  subject: ({ principal }) => (principal?.isMachine ? noPerson() : principal?.subject),
  client: ({ principal }) => principal?.client,
  issuer: ({ principal }) => principal?.issuerName,
  area: ({ action }) => action.area,
  action: (call) => actionSegments(call).map(decodeSegment).join('/'),
  version: ({ target }) => target.segments[1],
  actionVersion: ({ version }) => String(version),
  requestId: ({ id }) => id,
}

/** A machine is nobody's subject (C6.1.5a): nothing is sent. @throws Fault `unsendable_value` */
function noPerson(): never {
  throw new Fault('unsendable_value', {
    detail: '{subject} cannot be sent: a machine calls, which is no person',
    unchanged: true,
  })
}

export const isBuiltIn = (name: string): boolean => Object.hasOwn(BUILT_IN, name)

const own = <T>(values: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(values, name) ? values[name] : undefined

/**
 * Finds the value of a placeholder, decoded; undefined where the call has none. A value that the business lacks is a Fault
 * `business_value_missing`.
 */
export function findValue(to: TemplateReference): FindValue {
  switch (to.kind) {
    case 'name': {
      const builtIn = own(BUILT_IN, to.name)
      return builtIn ?? (({ params }) => own(params, to.name))
    }
    case 'segments':
      return ({ params }) => own(params, to.name)
    case 'value':
      return ({ values }) => values.texts[to.name] ?? missingValue(values, to.name)
    case 'query':
      return ({ query }) => own(query, to.name)
    case 'body': {
      const pointer = pointerText(to.pointer)
      return ({ found }) => own(found, pointer)
    }
  }
}

/** @throws Fault `business_value_missing` */
function missingValue({ secrets }: BusinessValues, name: string): never {
  const why = secrets.has(name) ? 'is sealed, and cannot be opened here' : 'is none of its values'
  throw new Fault('business_value_missing', { detail: `{business.${name}} ${why}`, unchanged: true })
}

/** Whether a client chooses a value: then a value that is not sent is the client's mistake, 400. */
export const isClients = (to: TemplateReference): boolean =>
  to.kind === 'name' ? to.name === 'action' || !isBuiltIn(to.name) : to.kind !== 'value'

/**
 * The fault of a value that is never sent: 400 for a client's value, otherwise 500.
 * @param why a verb and what follows; holds nothing of the value
 */
export const unsendable = ({ written, to }: Placeholder, why: string): Fault =>
  isClients(to)
    ? new Fault('unsendable_argument', {
        say: `The value of ${describe(to)} ${why}, and cannot be passed on. Change it.`,
      })
    : new Fault('unsendable_value', { detail: `{${written}} cannot be sent: it ${why}`, unchanged: true })

/** The client's name for it. */
function describe(to: TemplateReference): string {
  if (to.kind !== 'body') return to.name
  return to.pointer.length === 0 ? 'the body' : `${pointerText(to.pointer)} in the body`
}

/**
 * A value as a text with other text next to it, or as a part of a path, a query or a header.
 * @throws Fault `unsendable_argument`, `unsendable_value` for what is no text, number or boolean
 */
export function asText(value: JsonValue | undefined, placeholder: Placeholder): string {
  const text = scalarText(value)
  if (text !== undefined) return text
  throw unsendable(placeholder, value === undefined ? 'is missing' : 'is no text, number or boolean')
}
