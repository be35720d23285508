import { describe, expect, it } from 'vitest'
import { reportText } from '../../../src/base/config/problems.ts'
import { readExpectations, type PartyNames } from '../../../src/operate/settings/expectations.ts'
import { configFiles } from '../../support/config-files.ts'

const CLIENTS = ['acme-books', 'ledgerline']
const USERS = ['alice', 'bob']

const known: PartyNames = {
  hasClient: (id) => CLIENTS.includes(id),
  isMachine: () => false,
  hasUser: (name) => USERS.includes(name),
  clients: () => CLIENTS,
  users: () => USERS,
}

function read(text: string) {
  const at = configFiles({ 'access.yaml': text })
  const { calls, problems: report } = readExpectations(at('access.yaml'), {}, known)
  return { calls, problems: reportText(report).replaceAll(at('access.yaml'), 'access.yaml') }
}

describe('readExpectations', () => {
  it('C14.6 reads rows of a call, its token, and what is expected', () => {
    const { calls, problems } = read(`calls:
  - { call: GET /api/1.0/b/ACME/x/y, expect: no_credentials }
  - { call: POST /api/1.0/b/ACME/x/y, client: acme-books, user: bob, target: b/ACME, body: { a: 1 }, expect: allowed }
`)
    expect(problems).toBe('')
    expect(calls).toEqual([
      { call: 'GET /api/1.0/b/ACME/x/y', expect: 'no_credentials' },
      {
        ...{ call: 'POST /api/1.0/b/ACME/x/y', client: 'acme-books', user: 'bob', target: 'b/ACME' },
        ...{ body: { a: 1 }, expect: 'allowed' },
      },
    ])
  })

  it.each([
    ['client: acme-boks, user: bob', 'client  names no client: "acme-boks" — did you mean "acme-books"?'],
    ['client: acme-books, user: bbo', 'user  names no user: "bbo" — did you mean "bob"?'],
    ['client: acme-books', 'user  is missing: a token is for a client and a user'],
    ['user: bob', 'user  is of a token, which needs a `client` too'],
    ['target: b/ACME', 'target  is of a token, which needs a `client` too'],
    ['client: acme-books, user: bob, target: ACME', 'target  expected "b/CODE" or "f/CODE/FUND", got "ACME"'],
    ['from: nowhere', 'from  expected an IP address, got "nowhere"'],
    ['clinet: acme-books', 'clinet  is not a known key here — did you mean "client"?'],
  ])('C14.6 refuses a row with %s, and tells its line', (members, told) => {
    const { calls, problems } = read(
      `calls:\n  - { call: GET /api, expect: no_credentials }\n  - { call: GET /api, expect: allowed, ${members} }\n`,
    )
    expect(problems.split('\n')).toContain(`access.yaml:3  calls[1].${told}`)
    if (calls.length > 0) expect(calls).toHaveLength(2)
  })

  it('C14.6 refuses an unknown reason, and a call that is none', () => {
    const { calls, problems } = read(`calls:
  - { call: GET /api, expect: insuficient_scope }
  - { call: /api, expect: allowed }
`)
    expect(calls).toEqual([])
    expect(problems).toContain(
      'access.yaml:2  calls[0].expect  expected `allowed`, or the reason of a refusal as the log names it, got "insuficient_scope" — did you mean "insufficient_scope"?\n',
    )
    expect(problems).toContain('access.yaml:3  calls[1].call  expected a method and a path, such as')
  })

  it('C14.6 refuses a file without calls: it would expect nothing', () => {
    expect(read('calls: []\n').problems).toContain('access.yaml:1  calls  ')
  })

  it('C14.6 tells of a file that is not there', () => {
    expect(readExpectations('/nowhere/access.yaml', {}, known).problems.failed).toBe(true)
  })
})
