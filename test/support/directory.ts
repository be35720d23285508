import { Problems } from '../../src/base/config/problems.ts'
import { compileDirectory, type Directory } from '../../src/identity/directory/records/compile.ts'
import { directorySchema } from '../../src/identity/directory/records/schema.ts'
import { readRecord } from '../../src/identity/directory/records/read-records.ts'
import { READING } from './settings.ts'
import { compileCatalogue } from '../../src/base/config/scopes/catalogue.ts'

export const HASH = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'

export const catalogue = compileCatalogue([
  { name: 'fund.read', description: 'See', implies: [] },
  { name: 'fund.maintain', description: 'Change', implies: ['fund.read'] },
])

/** Businesses and roles that clients and users of tests refer to. */
export const PLACES = {
  businesses: {
    ACME: { name: 'Acme Advisory', funds: ['SUPER1'] },
    GLOBEX: { name: 'Globex Partners', funds: 'any' },
  },
  roles: { Reader: { scopes: ['fund.read'] } },
}

/** The directory that a configuration would be; throws if it has problems. */
export async function makeDirectory(written: object = {}): Promise<Directory> {
  const problems = new Problems()
  const config = readRecord(directorySchema, { ...PLACES, ...written }, problems)
  const made = config && (await compileDirectory(config, catalogue, problems, READING))
  if (made === undefined || problems.failed) throw new Error(JSON.stringify(problems.list))
  return made
}
