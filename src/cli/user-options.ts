/** The options of `postern user add` and `postern user change`. */
import { UsageError } from './command.ts'
import { ORDER } from './order-options.ts'

/** The option for each key of a user's record (src/directory/config.ts). */
export const USER_OPTIONS = {
  username: 'USERNAME',
  subject: 'subject',
  customers: 'customer',
  access: 'access',
  claims: 'claim',
} as const

const texts = { type: 'string', multiple: true } as const

/** For `parseArgs`: what `add` and `change` take. */
export const USER_ARGUMENTS = { ...ORDER, customer: texts, access: texts, claim: texts } as const

export type Tree = { [key: string]: string | Tree }

/**
 * The pairs of a repeated option `NAME=VALUE`.
 *
 * @throws UsageError if one has no `=`
 */
export function pairs(option: string, given: readonly string[] = []): (readonly [string, string])[] {
  return given.map((pair) => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`--${option}: expected NAME=VALUE, got "${pair}"`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
}

/** The claims as a tree: `address.locality=Sydney` is in `address`. */
export function claimsOf(given: readonly string[] | undefined): Tree {
  const claims: Tree = {}
  for (const [name, value] of pairs('claim', given)) {
    const [outer = '', inner] = name.split(/\.(.*)/s)
    if (inner === undefined) claims[outer] = value
    else {
      const before = claims[outer]
      claims[outer] = { ...(typeof before === 'object' && before), [inner]: value }
    }
  }
  return claims
}
