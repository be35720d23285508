import { Fault } from '../../kernel/faults.ts'
import type { Parsed } from '../context.ts'
import type { Step } from '../endpoint.ts'

/** C6.1.4: a missing parameter is `invalid_request`, which names it. */
export const requireParams =
  <C extends Parsed>(...names: readonly string[]): Step<C, C> =>
  (context) => {
    for (const name of names) requireParam(context.params, name)
    return context
  }

/** A parameter that must be there. */
export function requireParam(params: ReadonlyMap<string, string>, name: string): string {
  const value = params.get(name)
  if (value === undefined) throw new Fault('oauth_bad_request', { say: `The parameter ${name} is missing.` })
  return value
}
