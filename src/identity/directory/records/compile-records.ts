import { type Code, readCode } from '../../../base/config/scopes/scope-token.ts'
import type { Access, User } from '../../../base/contracts/people/people.ts'
import type { ConfiguredBusiness } from '../../../base/contracts/people/places.ts'
import { isArgon2 } from '../hashing/hasher.ts'
import type { RecordProblems } from './read-records.ts'
import { checkReferences, type ReferableNames } from './references.ts'
import { CODE_PATTERN, type ConfiguredBusinessRecord, type PersonRecord, type UserRecord } from './schema.ts'
import { compileValues } from './values.ts'

const CODE = new RegExp(CODE_PATTERN)

function checkFund(fund: unknown, index: number, all: readonly unknown[], problems: RecordProblems): void {
  if (typeof fund !== 'string' || !CODE.test(fund))
    problems.error(
      ['funds', index],
      'expected a code that can stand in a path, such as "SUPER1", in quotes if it is a number',
    )
  else if (all.indexOf(fund) !== index) problems.error(['funds', index], `is listed twice: "${fund}"`)
}

function compileFunds(funds: unknown, problems: RecordProblems): ConfiguredBusiness['funds'] {
  if (funds === 'any') return 'any'
  if (Array.isArray(funds)) {
    // Checked as a set first: checking each index of a long list would take quadratic time.
    const given = new Set<string>(funds)
    const good =
      given.size === funds.length && funds.every((fund) => typeof fund === 'string' && CODE.test(fund))
    if (!good) funds.slice(0, 1000).forEach((fund, index) => checkFund(fund, index, funds, problems))
    return new Set([...given].flatMap((fund) => codesOf(fund)))
  }
  problems.error(['funds'], 'expected a list of fund codes, or `any`')
  return new Set()
}

/** Empty for a code that was reported. */
const codesOf = (given: unknown): Code[] => {
  const code = typeof given === 'string' ? readCode(given) : undefined
  return code === undefined ? [] : [code]
}

/** Reports repeated fund codes and those that can't be in a path. Undefined if the business code itself is bad. */
export function compileBusiness(
  record: ConfiguredBusinessRecord,
  problems: RecordProblems,
): ConfiguredBusiness | undefined {
  const { name, address, phoneNumber, values } = record
  const code = readCode(record.code)
  if (code === undefined) return undefined
  return {
    code,
    name,
    ...(address !== undefined && { address }),
    ...(phoneNumber !== undefined && { phoneNumber }),
    ...(values !== undefined && { values: compileValues(values, problems) }),
    funds: compileFunds(record.funds, problems),
  }
}

function checkCustomers({ customers }: UserRecord, known: ReferableNames, problems: RecordProblems): void {
  for (const [index, id] of customers.entries()) {
    const at = ['customers', index]
    if (
      checkReferences('client', id, known.clients, at, problems) &&
      known.clients.get(id)?.kind !== 'customer'
    )
      problems.error(at, `refers to a client that is not a customer: "${id}"`)
  }
}

export function checkAccess(
  { access }: PersonRecord,
  known: Pick<ReferableNames, 'businesses' | 'roles'>,
  problems: RecordProblems,
): void {
  for (const [code, role] of Object.entries(access)) {
    checkReferences('business', code, known.businesses, ['access', code], problems)
    checkReferences('role', role, known.roles, ['access', code], problems)
  }
}

/** Reports what is wrong with a user. Users stay records (people.ts says why), so nothing is returned. */
export function checkUser(record: UserRecord, known: ReferableNames, problems: RecordProblems): void {
  if (!isArgon2(record.password))
    problems.error(['password'], 'expected a hash, `$argon2id$…`', '`postern hash-password` makes one')
  if (known.clients.get(record.subject)?.kind === 'machine')
    problems.error(
      ['subject'],
      `is the id of the machine "${record.subject}": its tokens would be taken for this user’s`,
      'a subject is nobody else’s: use another one',
    )
  checkCustomers(record, known, problems)
  checkAccess(record, known, problems)
}

/** Roles that do not exist any more are left out. */
export const compileUser = (
  { password, ...person }: UserRecord,
  roles: ReadonlyMap<string, Access>,
): User => ({ ...compilePerson(person, roles), passwordHash: password })

/** The same of a user whose password is not Postern's to verify. */
export function compilePerson({ access, ...same }: PersonRecord, roles: ReadonlyMap<string, Access>): User {
  const entries = Object.entries(access).flatMap(([code, name]) => {
    const role = roles.get(name)
    return role === undefined ? [] : [[code, role] as const]
  })
  return { ...same, passwordHash: undefined, access: new Map(entries) }
}
