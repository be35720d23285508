/** Names of components that client developers read as names of types (C11.3.7). */
import type { OperationDescription } from '../../base/contracts/calls/api-description.ts'
import { digestOf } from './components.ts'

/** An operation that the document describes. */
export interface NamedOperation extends OperationDescription {
  /** The names of its components begin with it: `AccountsBalance` in `AccountsBalanceResponse`. */
  readonly name: string
}

/** The letters and digits of a text, each word with a capital letter: `fund-list` is `FundList`. */
export const classWords = (text: string): string =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('')

/** Steps of a path in front of the area: `/api/1.0/b/{businessCode}`, `/api/1.0/f/{businessCode}/{fundCode}`. */
const BEFORE_AREA = { business: 5, fund: 6 } as const

/** The area, the action and the method, if it is not GET: `accounts/{id}/balance` is `AccountsByIdBalance`. */
function nameFrom({ path, level, method }: OperationDescription): string {
  const steps = path.split('/').slice(BEFORE_AREA[level])
  const words = steps.map((step) => (step.startsWith('{') ? 'By' : '') + classWords(step))
  const name = [...words, ...(method === 'GET' ? [] : [classWords(method.toLowerCase())])].join('')
  return /^[A-Za-z]/.test(name) ? name : `Api${name}`
}

/**
 * A name depends on the operation alone. Where several would have the same, the operation of a business has it, that of a
 * fund has `OfFund` behind it, and names that are still the same get a digest of their path.
 */
export function withNames(operations: readonly OperationDescription[]): readonly NamedOperation[] {
  const names = operations.map(nameFrom)
  const ofBusinesses = new Set(
    names.filter((_, at) => operations[at]?.level === 'business').map((name) => name.toLowerCase()),
  )
  const apart = names.map((name, at) =>
    operations[at]?.level === 'fund' && ofBusinesses.has(name.toLowerCase()) ? `${name}OfFund` : name,
  )
  const same = Map.groupBy(apart, (name) => name.toLowerCase())
  return operations.map((operation, at) => {
    const name = apart[at] ?? ''
    const isOnly = same.get(name.toLowerCase())?.length === 1
    return {
      ...operation,
      name: isOnly ? name : `${name}_${digestOf(`${operation.method} ${operation.path}`)}`,
    }
  })
}

/** For an operation whose path another one stands for: its names never depend on that one, nor are they the same. */
export const namedApart = (operation: OperationDescription): NamedOperation => ({
  ...operation,
  name: `${nameFrom(operation)}_${digestOf(operation.id)}`,
})
