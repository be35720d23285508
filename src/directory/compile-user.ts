import type { Access, User } from '../contracts/people.ts'
import { isArgon2 } from './argon2-encoding.ts'
import type { Complaints } from './complaints.ts'
import type { UserRecord } from './config.ts'
import { checkKnown, type ReferableNames } from './referable-names.ts'

function checkCustomers({ customers }: UserRecord, known: ReferableNames, complaints: Complaints): void {
  for (const [index, id] of customers.entries()) {
    const at = ['customers', index]
    if (checkKnown('client', id, known.clients, at, complaints) && known.clients.get(id)?.kind !== 'customer')
      complaints.error(at, `names a client that is no customer: "${id}"`)
  }
}

function checkAccess({ access }: UserRecord, known: ReferableNames, complaints: Complaints): void {
  for (const [code, role] of Object.entries(access)) {
    checkKnown('business', code, known.businesses, ['access', code], complaints)
    checkKnown('role', role, known.roles, ['access', code], complaints)
  }
}

/** Reports what is wrong with a user; answers nothing, since users are kept as records (see people.ts). */
export function checkUser(record: UserRecord, known: ReferableNames, complaints: Complaints): void {
  if (!isArgon2(record.password))
    complaints.error(['password'], 'expected a hash, `$argon2id$…`', '`postern hash-password` makes one')
  checkCustomers(record, known, complaints)
  checkAccess(record, known, complaints)
}

/** The user as the contract has it. */
export function compileUser(record: UserRecord, roles: ReadonlyMap<string, Access>): User {
  const { password, access, ...same } = record
  const entries = Object.entries(access).flatMap(([code, name]) => {
    const role = roles.get(name)
    return role === undefined ? [] : [[code, role] as const]
  })
  return { ...same, passwordHash: password, access: new Map(entries) }
}
