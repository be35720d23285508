import type { Call } from '../../contracts/backend.ts'
import { checkValue, holdsEscape, isPlain } from './segment-value.ts'
import { compilePlaceholder, placeholdersOf, type Template, unsendable } from './template.ts'

/** A text that is the same for all calls, or made for each. @throws Fault `unsendable_value` */
export type Text = string | ((call: Call) => string)

/** Throws Fault `unsendable_value` for a value that may not be sent in this place. */
export type CheckValue = (value: string, name: string) => void

const NO_CHECK: CheckValue = () => undefined

/**
 * Compiles a template of a header or of a value in the query: decoded text. Each value is one that C3.4 takes as a
 * segment (C8.7), and text beside it makes no escape of it.
 */
export function compileText(template: Template, check: CheckValue = NO_CHECK): Text {
  const [blamed] = placeholdersOf(template)
  if (blamed === undefined) return template.map((part) => (part.kind === 'text' ? part.text : '')).join('')
  const parts = template.map((part) => {
    if (part.kind === 'text') return part.text
    const { name } = part
    const valueIn = compilePlaceholder(part)
    return (call: Call): string => {
      const value = valueIn(call)
      if (isPlain(value)) return value
      checkValue(value, name)
      check(value, name)
      return value
    }
  })
  const [only] = parts
  if (parts.length === 1 && only !== undefined) return only
  return (call) => {
    let text = ''
    for (const part of parts) text += typeof part === 'string' ? part : part(call)
    if (holdsEscape(text)) throw unsendable(blamed, 'with the text beside it, it is an escape')
    return text
  }
}
