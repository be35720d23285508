import { describe, expect, it } from 'vitest'
import { recordsOf } from '../../support/audit-files.ts'
import {
  ALICE,
  auditedPeople,
  authorizeUrl,
  HERE,
  onOf,
  SCOPE,
  sharedPeople,
  wholeTrail,
} from '../../support/audited-people.ts'
import { withoutAudit } from '../../support/held-audit.ts'
import { Person } from '../../support/person.ts'

/** Of the tests that leave it as it was. */
const atOne = sharedPeople()

const HERSELF = { kind: 'user', subject: ALICE }

describe('C12.3 people', () => {
  it('C12.3 login.succeeded, login.refused and login.ended tell who, and which session', async () => {
    const people = await atOne()
    const person = new Person(people.service.authUrl)
    const page = await person.open('/connect/account')
    await person.submit(page, { username: 'alice', password: 'not-hers' })
    await person.logIn(page)
    await person.submit(await person.open('/connect/endsession'), { decision: 'logout' })
    expect(await people.recorded('login.refused')).toMatchObject([
      {
        outcome: 'refused',
        reason: 'invalid_grant',
        actor: { kind: 'anonymous' },
        on: { subject: ALICE },
        values: { 'actor.claimed': 'alice', 'actor.address': HERE },
      },
    ])
    const [begun] = await people.recorded('login.succeeded')
    expect(begun).toMatchObject({ actor: HERSELF, on: { kind: 'session' } })
    expect(await people.recorded('login.ended')).toMatchObject([
      { actor: HERSELF, on: { kind: 'session', id: onOf(begun).id } },
    ])
    expect(wholeTrail(people.service)).not.toContain('not-hers')
  })

  it('C12.3 login.ended is recorded where somebody logs in over a session', async () => {
    const people = await auditedPeople()
    const { person } = await people.walk()
    await person.logIn(await person.open(authorizeUrl({ prompt: 'login' })), 'bob')
    const [first] = await people.recorded('login.succeeded', 2)
    expect(first).toMatchObject({ on: { client: 'ledgerline' } })
    expect(await people.recorded('login.ended')).toMatchObject([
      { actor: HERSELF, on: { kind: 'session', id: onOf(first).id } },
    ])
  })

  it('C12.3 session.revoked is a session that is ended from another browser', async () => {
    const people = await atOne()
    const there = await people.loggedIn()
    const here = await people.loggedIn()
    const [other] = await people.recorded('login.succeeded', 2)
    const { id } = onOf(other)
    await here.submit(await here.open('/connect/account'), { end: id })
    expect(await people.recorded('session.revoked')).toMatchObject([
      { outcome: 'success', actor: HERSELF, on: { kind: 'session', id } },
    ])
    expect((await there.open('/connect/account')).text).toContain('<h1>Sign in</h1>')
  })

  it('C12.3 consent.given and consent.withdrawn tell client, business and scopes', async () => {
    const people = await auditedPeople()
    const { code, person } = await people.walk()
    await people.byCode(code)
    const page = await person.open('/connect/account')
    const key = /name="withdraw" value="([^"]*)"/.exec(page.text)?.[1] ?? ''
    await person.submit(page, { withdraw: key })
    const on = { kind: 'consent', client: 'ledgerline', business: 'ACME' }
    expect(await people.recorded('consent.given')).toMatchObject([
      { outcome: 'success', actor: HERSELF, on, grant: { scope: SCOPE } },
    ])
    expect(await people.recorded('consent.withdrawn')).toMatchObject([
      { outcome: 'success', actor: HERSELF, on, change: { scopes: SCOPE.split(' '), families: 1 } },
    ])
  })

  it('C12.3 lockout.began is recorded once, when the delay begins', async () => {
    const people = await auditedPeople()
    const { free } = people.service.configuration.identity.guessing.attempts
    for (let count = 0; count <= free; count += 1) await people.byPassword('wrong')
    await people.recorded('token.refused', free + 1)
    expect(recordsOf(people.service, 'lockout.began')).toMatchObject([
      {
        actor: { kind: 'anonymous' },
        on: { kind: 'lockout', subject: ALICE, client: 'acme-books' },
        change: { of: 'attempts', failures: free },
        values: { 'on.id': 'alice', 'actor.address': HERE },
      },
    ])
  })
})

describe('C12.1.4 people while nothing can be recorded', () => {
  it('C12.1.4 a login begins no session', async () => {
    const people = await auditedPeople()
    const person = new Person(people.service.authUrl)
    const page = await person.open('/connect/account')
    const refused = await withoutAudit(people.service, () => person.logIn(page))
    expect(refused.status).toBe(503)
    expect(refused.text).toContain('temporarily_unavailable')
    expect(await people.service.world.store.list('session')).toHaveLength(0)
    expect((await person.open('/connect/account')).text).toContain('<h1>Sign in</h1>')
    expect((await person.logIn(page)).text).toContain('Alice')
  })

  it('C12.1.4 a login over a session does not end that one', async () => {
    const people = await atOne()
    const person = await people.loggedIn()
    const page = await person.open(authorizeUrl({ prompt: 'login' }))
    expect((await withoutAudit(people.service, () => person.logIn(page, 'bob'))).status).toBe(503)
    expect((await person.open('/connect/account')).text).toContain('Alice')
  })

  it('C12.1.4 no consent is kept and no code made; the same form works later', async () => {
    const people = await auditedPeople()
    const { store } = people.service.world
    const { page, person } = await people.asked()
    const allow = () => person.submit(page, { decision: 'allow' })
    expect((await withoutAudit(people.service, allow)).status).toBe(503)
    expect([...(await store.list('consent')), ...(await store.list('code'))]).toEqual([])
    expect(people.codeOf(await allow())).not.toBe('')
    const { location } = await withoutAudit(people.service, () => person.open(authorizeUrl()))
    expect(location?.searchParams.get('error')).toBe('temporarily_unavailable')
    expect(location?.searchParams.has('code')).toBe(false)
    expect(await store.list('code')).toHaveLength(1)
  })

  it('C12.1.4 a logout takes effect', async () => {
    const people = await auditedPeople()
    const person = await people.loggedIn()
    await withoutAudit(people.service, async () => {
      await person.submit(await person.open('/connect/endsession'), { decision: 'logout' })
    })
    expect(await people.service.world.store.list('session')).toHaveLength(0)
  })
})
