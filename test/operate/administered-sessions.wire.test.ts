/** Sessions, token families and consents as operators list and end them, by the admin API and by commands (C11.5.2). */
import { describe, expect, it } from 'vitest'
import { recordsOf, type WrittenRecord } from '../support/audit-files.ts'
import { ALICE, authorizeUrl, SCOPE } from '../support/audited-people.ts'
import { postForm } from '../support/oauth.ts'
import { operatedHere, type Operated } from '../support/operated.ts'
import { Person } from '../support/person.ts'
import { issueToken } from '../support/tokens.ts'

const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'

const byPassword = (service: Operated, scope = SCOPE) => issueToken(service, { scope })

const refresh = async (service: Operated, token: string, client = 'acme-books') =>
  postForm(service, '/connect/token', {
    params: { grant_type: 'refresh_token', refresh_token: token },
    client,
  })

/** Alice logs in, allows the partner what it asks for, and the partner gets its tokens. */
async function throughPartner(service: Operated) {
  const person = new Person(service.authUrl)
  const page = await person.logIn(await person.open(authorizeUrl()))
  const { location } = await person.submit(page, { decision: 'allow' })
  const params = {
    grant_type: 'authorization_code',
    code: location?.searchParams.get('code') ?? '',
    redirect_uri: 'http://127.0.0.1:8090/callback',
    code_verifier: VERIFIER,
  }
  const { json } = await postForm(service, '/connect/token', { params, client: 'ledgerline' })
  return { person, refreshToken: String(json.refresh_token), accessToken: String(json.access_token) }
}

const isLoggedIn = async (person: Person): Promise<boolean> =>
  !(await person.open('/connect/account')).text.includes('<h1>Sign in</h1>')

/** The records of an event, once there are so many. */
async function recorded(service: Operated, event: string, count: number): Promise<readonly WrittenRecord[]> {
  await expect.poll(() => recordsOf(service, event).length).toBe(count)
  return recordsOf(service, event)
}

const ADMIN = { kind: 'operator', operator: 'admin', via: 'admin' }
const BY_COMMAND = { ...ADMIN, via: 'cli' }

describe('operators', () => {
  it('C11.5.2 list sessions, families and consents, and see no secret', async () => {
    const service = await operatedHere()
    const { person, refreshToken } = await throughPartner(service)
    const rotated = await refresh(service, refreshToken, 'ledgerline')
    const sessions = await service.admin('GET', `/sessions?subject=${ALICE}`)
    expect(sessions).toEqual({
      status: 200,
      body: {
        sessions: [
          {
            ...{ id: expect.stringMatching(/^[\w-]{43}$/), subject: ALICE, browser: expect.any(String) },
            ...{ begun: expect.stringMatching(/Z$/), lastUsed: expect.stringMatching(/Z$/) },
            expires: expect.stringMatching(/Z$/),
          },
        ],
      },
    })
    const families = await service.admin('GET', '/families?client=ledgerline&business=ACME')
    const [family] = families.body.families
    expect(family).toMatchObject({
      ...{ subject: ALICE, client: 'ledgerline', business: 'ACME' },
      scopes: ['openid', 'offline_access', 'fund.read'],
    })
    expect(Date.parse(family.lastUsed)).toBeGreaterThanOrEqual(Date.parse(family.begun))
    expect(Date.parse(family.expires)).toBeGreaterThan(Date.now())
    const consents = await service.admin('GET', `/consents?subject=${ALICE}&client=ledgerline`)
    expect(consents.body.consents).toMatchObject([{ client: 'ledgerline', subject: ALICE, business: 'ACME' }])
    for (const none of [
      '/sessions?subject=nobody',
      '/families?client=acme-books',
      '/consents?business=GLOBEX',
    ])
      expect(Object.values((await service.admin('GET', none)).body)[0]).toEqual([])
    const seen = JSON.stringify([sessions, families, consents])
    const cookie = person.cookie.split('=')[1] ?? ''
    for (const secret of [cookie, refreshToken, rotated.json.refresh_token])
      expect(seen).not.toContain(secret)
  })

  it('C11.5.2 list page by page: each record comes once', async () => {
    const service = await operatedHere()
    for (let count = 0; count < 5; count += 1) await byPassword(service)
    const ids: string[] = []
    let after = ''
    do {
      const { body } = await service.admin('GET', `/families?limit=2${after}`)
      ids.push(...body.families.map(({ id }: { id: string }) => id))
      after = body.next === undefined ? '' : `&after=${body.next}`
    } while (after !== '')
    expect(new Set(ids).size).toBe(5)
    expect(ids).toEqual(ids.toSorted())
    const { out } = await service.postern('families', 'list', '--client', 'acme-books', '--limit', '4')
    expect(out.split('\n')[0]).toMatch(/^ID +CLIENT +SUBJECT +PLACE +SCOPES +BEGUN +LAST USED +EXPIRES$/)
    expect(out).toContain(`more: --after ${ids[3]}\n`)
    const json = JSON.parse((await service.postern('families', 'list', '--json', '--limit', '1')).out)
    expect(json.families).toMatchObject([{ id: ids[0], client: 'acme-books' }])
  })

  it('C11.5.2 end the session of a user: the browser must log in again, refresh tokens stay', async () => {
    const service = await operatedHere()
    const { person, refreshToken } = await throughPartner(service)
    expect(await isLoggedIn(person)).toBe(true)
    const preview = await service.postern('sessions', 'end', '--subject', ALICE, '--preview')
    expect(preview.out).toMatch(/\n1 session would end\n$/)
    expect(await isLoggedIn(person)).toBe(true)
    const refused = await service.postern('sessions', 'end', '--subject', ALICE)
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('add --yes to confirm')])
    const ended = await service.postern('sessions', 'end', '--subject', ALICE, '--yes')
    expect(ended).toMatchObject({ code: 0, out: expect.stringMatching(/\n1 session ended\n$/) })
    expect(await isLoggedIn(person)).toBe(false)
    expect((await refresh(service, refreshToken, 'ledgerline')).status).toBe(200)
    expect(await recorded(service, 'session.revoked', 1)).toMatchObject([
      { actor: { ...BY_COMMAND, claimed: expect.any(String) }, on: { kind: 'session', subject: ALICE } },
    ])
    expect((await service.postern('sessions', 'end', '--subject', ALICE, '--yes')).out).toBe(
      'no sessions match\n',
    )
  })

  it('C11.5.2 withdraw a consent: what it gave ends, and the user is asked again', async () => {
    const service = await operatedHere()
    const { person, refreshToken } = await throughPartner(service)
    const own = await byPassword(service)
    const { out } = await service.postern('consents', 'end', '--client', 'ledgerline', '--yes')
    expect(out).toMatch(/\n1 consent ended \(1 family of refresh tokens\)\n$/)
    expect((await refresh(service, refreshToken, 'ledgerline')).status).toBe(400)
    expect((await refresh(service, own.refresh_token ?? '')).status).toBe(200)
    expect((await person.open(authorizeUrl())).text).toContain('name="decision"')
    expect(await recorded(service, 'consent.withdrawn', 1)).toMatchObject([
      {
        actor: BY_COMMAND,
        on: { client: 'ledgerline', subject: ALICE, business: 'ACME' },
        change: { families: 1 },
      },
    ])
  })

  it('C11.5.2 are told what is wrong: no choice, two choices, a filter that a kind does not have', async () => {
    const service = await operatedHere()
    for (const path of ['/sessions', '/families?id=a&client=b', '/consents?preview=true'])
      expect((await service.admin('DELETE', path)).status).toBe(400)
    expect((await service.admin('GET', '/sessions?client=acme-books')).status).toBe(400)
    expect(await service.postern('sessions', 'list', '--client', 'a')).toMatchObject({
      code: 2,
      err: expect.stringContaining('there is no option "--client" here'),
    })
    expect((await service.postern('families', 'end')).code).toBe(2)
    expect(await service.postern('families', 'end', 'nothing')).toMatchObject({
      code: 1,
      err: 'postern: there is none of this id\n  id  is not known, or has ended\n',
    })
  })
})
