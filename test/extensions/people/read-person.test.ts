import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorForLog, withoutHashes } from '../../../src/extensions/people/error-for-log.ts'
import { PersonMistake } from '../../../src/extensions/people/plain-person.ts'
import { readPerson } from '../../../src/extensions/people/module-directory.ts'
import { HASH } from '../../support/directory.ts'

const DORA = { subject: 's-1', username: 'dora' }

describe('C5.7 what a module answered, as a user', () => {
  it('C5.7 has the defaults of a user of the configuration', () => {
    expect(readPerson(DORA)).toEqual({
      ...{ ...DORA, customers: [], disabled: false, locked: false, access: {}, claims: {} },
    })
  })

  it.each([undefined, null])('C5.7 is nobody where it is %s', (nobody) => {
    expect(readPerson(nobody)).toBeUndefined()
  })

  it('C5.7 may be a row of a database: without a prototype, with nulls and empty texts among the claims', () => {
    const row = new DatabaseSync(':memory:').prepare(`select 's-1' as subject, 'dora' as username`).get()
    const claims = { name: null, email: '', gender: undefined, address: { locality: 'Perth', region: null } }
    expect(readPerson({ ...row, claims })).toMatchObject({ claims: { address: { locality: 'Perth' } } })
    expect(readPerson(row)).toMatchObject(DORA)
  })

  it.each([
    ['disabled: 0', { disabled: 0 }, 'disabled'],
    ['locked: null', { locked: null, subject: undefined }, 'subject'],
    ['disabled as a text', { disabled: 'no' }, 'disabled'],
    ['a subject that is a number', { subject: 7 }, 'subject'],
    ['a subject with a line end', { subject: 'a\nb' }, 'subject'],
    ['a name of spaces', { username: '  ' }, 'username'],
    ['customers as a text', { customers: 'acme-books' }, 'customers'],
    ['a customer twice', { customers: ['a', 'a'] }, 'customers'],
    ['a customer that is an object', { customers: [{ env: 'HOME' }] }, 'customers'],
    ['a role that is a list', { access: { ACME: ['Reader'] } }, 'ACME'],
    ['a business that is no code', { access: { 'a/b': 'Reader' } }, 'a/b'],
    ['claims as a list', { claims: [] }, 'claims'],
    ['a claim that is a reference', { claims: { name: { file: '/etc/passwd' } } }, 'name'],
    ['a claim that is a number', { claims: { phone_number: 61 } }, 'phone_number'],
    ['a claim that nobody knows', { claims: { admin: 'yes' } }, 'admin'],
    ['a password', { password: HASH }, 'password'],
    ['a function', { toJSON: () => DORA }, 'toJSON'],
    ['a text of a megabyte', { claims: { name: 'x'.repeat(1_000_000) } }, 'name'],
    [
      'thousands of members',
      Object.fromEntries(Array.from({ length: 2000 }, (_, at) => [`m${at}`, 1])),
      'members',
    ],
    ['a sparse list of billions', { customers: Object.assign([], { length: 4_000_000_000 }) }, 'customers'],
  ])('C5.7 is refused with %s, and the reason names it', (_, member, named) => {
    const refused = (): unknown => readPerson({ ...DORA, ...member })
    expect(refused).toThrow(PersonMistake)
    expect(refused).toThrow(named)
  })

  it('C5.7 T3.14 tells no value: it may be a hash that is in the wrong place', () => {
    for (const wrong of [{ subject: `${HASH} x` }, { claims: { name: 5, [HASH]: 'x' } }, { disabled: HASH }])
      try {
        readPerson({ ...DORA, ...wrong })
        expect.unreachable()
      } catch (error) {
        expect((error as Error).message).not.toContain('CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc')
      }
  })

  it('C5.7 is a record or a mistake, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.anything({ withNullPrototype: true, withSparseArray: true, withDate: true }),
        (given) => {
          for (const whole of [given, { ...DORA, claims: given }, { ...DORA, access: given }])
            try {
              const record = readPerson(whole)
              expect(record === undefined || typeof record.subject === 'string').toBe(true)
            } catch (error) {
              expect(error).toBeInstanceOf(PersonMistake)
            }
        },
      ),
    )
  })
})

const HASHES = [
  HASH,
  '$2b$10$UYpPgsVh/RWdBFsdG694E.uQVu.VNTjz25iIShNgjTtlCWe.S/v.O',
  '{SSHA}0c0blFTXXNuAMHECS4uxrj3ZieMoWImr',
  'SOIdVzHP6VP6ZAMkLO7shFHhIMCVfoWfMDBIdBlC4hI=',
  '5f4dcc3b5aa765d61d8327deb882cf99',
  '5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8',
]

describe('C5.7 T3.14 what the log tells of an exception of the module', () => {
  it.each(HASHES)('has no hash such as %s', (hash) => {
    const { message, stack } = errorForLog(new Error(`cannot compare "${hash}" with it`))
    expect(`${message}${stack}`).not.toContain(hash)
    expect(message).toBe('cannot compare "[redacted]" with it')
  })

  it.each(['hunter2', 'a "quoted" one', 'ünïcode & more', 'a', '$&', '\ud800'])(
    'has no password, as it is or as others quote it: %j',
    (password) => {
      const quoted = [password, JSON.stringify(password), Buffer.from(password).toString('base64')]
      if (password.isWellFormed()) quoted.push(encodeURIComponent(password))
      const error = new TypeError(`0 ${quoted.join(' 1 ')} 2`, { cause: new Error(`3 ${password}`) })
      const logged = errorForLog(Object.assign(error, { password, code: `E_${password}` }), [password])
      const cause = logged.cause as Error
      for (const text of [
        logged.message,
        logged.stack,
        cause.message,
        String((logged as { code?: unknown }).code),
      ])
        expect(text?.replaceAll('[redacted]', '').replace(/^ {4}at .*$/gm, '')).not.toContain(password)
      expect(logged).not.toHaveProperty('password')
    },
  )

  it('has what helps: the class, the message, the place, the cause and file names', () => {
    const cause = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' })
    const logged = errorForLog(
      new RangeError('cannot open /srv/company/people/of-the-company/users.db', { cause }),
    )
    expect(logged).toMatchObject({
      name: 'RangeError',
      message: 'cannot open /srv/company/people/of-the-company/users.db',
      cause: { message: 'connect ECONNREFUSED 127.0.0.1:5432', code: 'ECONNREFUSED' },
    })
    expect(logged.stack).toContain('read-person.test.ts')
  })

  it('is bounded, and reads what cannot be read', () => {
    const circle = new Error('x'.repeat(10_000))
    circle.cause = circle
    expect(errorForLog(circle).message).toHaveLength(10)
    const hostile = Object.defineProperty(new Error('x'), 'message', {
      get: () => {
        throw new Error('no')
      },
    })
    expect(errorForLog(hostile).message).toBe('what was thrown cannot be read')
    expect(errorForLog({ password: 'hunter2' }).message).toBe('threw a value of type object')
    expect(errorForLog('a text with hunter2', ['hunter2']).message).toBe('a text with [redacted]')
    expect(withoutHashes('x '.repeat(100_000))).toBe('[too long]')
  })
})

describe('T6.1 controls of direction', () => {
  it('T6.1 comes without them from a people module, so that a stray mark locks nobody out', () => {
    const claims = { name: `Acme \u200fskooB`, family_name: '\u200e', email: 'a@example.com' }
    expect(readPerson({ subject: 's', username: 'dora', claims })).toMatchObject({
      claims: { name: 'Acme skooB', email: 'a@example.com' },
    })
    expect(readPerson({ subject: 's', username: 'dora', claims })?.claims).not.toHaveProperty('family_name')
    expect(() => readPerson({ subject: 's', username: `Acme \u200fskooB` })).toThrow('username')
  })
})
