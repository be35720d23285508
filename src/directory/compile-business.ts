import type { Business } from '../contracts/places.ts'
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
    const codes = new Set<string>(funds)
    const good =
      codes.size === funds.length && funds.every((fund) => typeof fund === 'string' && CODE.test(fund))
    if (!good) funds.slice(0, 1000).forEach((fund, index) => checkFund(fund, index, funds, complaints))
    return codes
  }
  complaints.error(['funds'], 'expected a list of fund codes, or `any`')
  return new Set()
}

/** Reports fund codes that cannot stand in a path, and repeats. */
export function compileBusiness(record: BusinessRecord, complaints: Complaints): Business {
  const { code, name, address, phoneNumber } = record
  return {
    code,
    name,
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
    funds: compileFunds(record.funds, complaints),
  }
}
