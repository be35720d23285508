import type { Business } from '../contracts/places.ts'
import { readCode, type Code } from '../scopes/scope-token.ts'
import type { Complaints } from './complaints.ts'
import { CODE_PATTERN, type BusinessRecord } from './config.ts'

const CODE = new RegExp(CODE_PATTERN)

function checkFund(fund: unknown, index: number, all: readonly unknown[], complaints: Complaints): void {
  if (typeof fund !== 'string' || !CODE.test(fund))
    complaints.error(
      ['funds', index],
      'expected a code that can stand in a path, such as "SUPER1", in quotes if it is a number',
    )
  else if (all.indexOf(fund) !== index)
    complaints.error(['funds', index], `stands in the list twice: "${fund}"`)
}

function compileFunds(funds: unknown, complaints: Complaints): Business['funds'] {
  if (funds === 'any') return 'any'
  if (Array.isArray(funds)) {
    // A big list is checked as a set first: looking up each index would take quadratic time.
    const given = new Set<string>(funds)
    const good =
      given.size === funds.length && funds.every((fund) => typeof fund === 'string' && CODE.test(fund))
    if (!good) funds.slice(0, 1000).forEach((fund, index) => checkFund(fund, index, funds, complaints))
    return new Set([...given].flatMap((fund) => codesOf(fund)))
  }
  complaints.error(['funds'], 'expected a list of fund codes, or `any`')
  return new Set()
}

/** None for what was reported. */
const codesOf = (given: unknown): Code[] => {
  const code = typeof given === 'string' ? readCode(given) : undefined
  return code === undefined ? [] : [code]
}

/** Reports fund codes that cannot stand in a path, and repeats. Undefined where the schema has refused the code. */
export function compileBusiness(record: BusinessRecord, complaints: Complaints): Business | undefined {
  const { name, address, phoneNumber } = record
  const code = readCode(record.code)
  if (code === undefined) return undefined
  return {
    code,
    name,
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
    funds: compileFunds(record.funds, complaints),
  }
}
