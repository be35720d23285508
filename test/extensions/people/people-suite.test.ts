import type { PeopleUser } from '../../../src/base/contracts/people/people-module.ts'
import type { People } from '../../../src/base/contracts/people/people.ts'
import { LayeredPeople } from '../../../src/identity/directory/records/people.ts'
import { makeDirectory } from '../../support/directory.ts'
import { describeUsers, type WrittenPeople } from '../../support/suites/people.contract.ts'
import { makeModulePeople } from './made-people.ts'

/** As a table of the operator's would have them. */
const elsewhere = async ({ users }: WrittenPeople): Promise<People> => {
  const rows = Object.entries(users).map(([username, user]) => ({
    username,
    ...user,
    password: undefined,
  })) as unknown as PeopleUser[]
  const { people } = await makeModulePeople({
    findUserByName: (name) => rows.find(({ username }) => username === name),
    findUserBySubject: (key) => Promise.resolve(rows.find(({ subject }) => subject === key)),
    verifyPassword: () => false,
  })
  return people
}

describeUsers({ name: 'C5.7 People of another system', open: elsewhere }, undefined)

describeUsers(
  {
    name: 'C5.7 People of another system beneath a configuration',
    open: async (written) => new LayeredPeople((await makeDirectory()).people, await elsewhere(written)),
  },
  undefined,
)
