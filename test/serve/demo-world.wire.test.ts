import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postForm } from '../support/oauth.ts'
import { bearer, expectFault, send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { ALL_AT_ACME, issueToken, MEMBER, type TokenResponse } from '../support/tokens.ts'

const API = '/api/1.0'
const ACME = `${API}/b/ACME/fund-data`
const SUPER1 = `${API}/f/ACME/SUPER1`
const MEMBER_DETAIL = `${SUPER1}/member-data/member-detail/${MEMBER}`

interface World {
  readonly gateway: StartedPostern
  readonly token: string
}

const openWorld = async (): Promise<World> => {
  const gateway = await startPostern({ keeps: 'nothing' })
  return { gateway, token: (await issueToken(gateway, { scope: ALL_AT_ACME })).access_token }
}
/** Read only, and one of its own for tests that write. */
let world: World
beforeAll(async () => {
  world = await openWorld()
})
afterAll(() => world.gateway.close())

const ask = ({ gateway, token }: World, target: string, { headers, ...more }: Partial<Sent> = {}) =>
  send(gateway, { target, ...more, headers: { ...bearer(token), ...headers } })

/** The `Data` that a GET in JSON returns. */
async function data(target: string, from = world): Promise<Record<string, unknown>> {
  const { status, body } = await ask(from, target, { headers: { Accept: 'application/json' } })
  expect(status, body).toBe(200)
  return (JSON.parse(body) as { Data: Record<string, unknown> }).Data
}

const TYPES = { json: 'application/json', xml: 'application/xml', form: 'application/x-www-form-urlencoded' }
const write = (from: World, target: string, body: string, type: keyof typeof TYPES = 'json') =>
  ask(from, target, { method: 'POST', body, headers: { 'Content-Type': TYPES[type] } })

describe('C10: reads', () => {
  it('C10: fund-list', async () => {
    const { FundSummaries, TotalCount, ...rest } = await data(`${ACME}/fund-list`)
    expect(rest).toEqual({})
    expect(TotalCount).toBe(2)
    expect(FundSummaries).toEqual([
      {
        Code: 'SUPER1',
        Name: expect.any(String),
        Status: expect.any(String),
        LegalEntityType: expect.any(String),
        ABN: expect.any(String),
        Tags: expect.any(Array),
      },
      expect.objectContaining({ Code: 'SUPER2' }),
    ])
  })

  it('C10: fund-list in XML: items are named by their singular', async () => {
    const { status, body } = await ask(world, `${ACME}/fund-list`, { headers: { Accept: 'application/xml' } })
    expect(status).toBe(200)
    expect(body).toContain('<FundSummaries type="array"><FundSummary><Code>SUPER1</Code>')
    expect(body).toMatch(/<Tags type="array"><Tag>[^<]+<\/Tag>/)
    expect(body).toContain('<TotalCount type="number">2</TotalCount>')
  })

  it('C10: fund-detail', async () => {
    expect(await data(`${SUPER1}/fund-data/fund-detail`)).toMatchObject({
      Code: 'SUPER1',
      Name: expect.any(String),
      Status: expect.any(String),
    })
  })

  it('C10: member-list', async () => {
    const { MemberSummaries, TotalCount } = await data(`${SUPER1}/member-data/member-list`)
    expect(TotalCount).toBe((MemberSummaries as unknown[]).length)
    for (const each of MemberSummaries as object[])
      expect(Object.keys(each).sort()).toEqual(['DisplayName', 'MemberId', 'MemberNumber', 'Status'])
    expect(MemberSummaries).toContainEqual(expect.objectContaining({ MemberId: MEMBER }))
  })

  it('C10: member-detail', async () => {
    expect(await data(MEMBER_DETAIL)).toMatchObject({
      MemberId: MEMBER,
      Status: expect.any(String),
      PersonalDetails: {
        FirstName: expect.any(String),
        LastName: expect.any(String),
        DateOfBirth: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        Gender: expect.any(String),
      },
    })
  })

  it('C10: version 2 of member-detail adds a field, and nothing else', async () => {
    const version = async (n: number) => {
      const headers = { Accept: `application/vnd.postern.action.v${String(n)}+json` }
      const { body } = await ask(world, MEMBER_DETAIL, { headers })
      return (JSON.parse(body) as { Data: Record<string, unknown> }).Data
    }
    const { CommunicationPreferences, ...rest } = await version(2)
    expect(CommunicationPreferences).toBeDefined()
    expect(rest).toEqual(await version(1))
  })

  it('C10: a member id means the same member in capitals', async () => {
    const capitals = MEMBER_DETAIL.replace(MEMBER, MEMBER.toUpperCase())
    expect(await data(capitals)).toEqual(await data(MEMBER_DETAIL))
  })

  it('C10: a token request of globex-ledger may leave out the scope', async () => {
    const asked = await postForm(world.gateway, '/connect/token', {
      params: { grant_type: 'password', username: 'bob', password: 'bob-password' },
      client: 'globex-ledger',
    })
    const { access_token: token, scope } = asked.json as TokenResponse
    expect(scope).toBe('openid profile business.fund.list fund.read target:b/GLOBEX')
    const list = `${API}/b/GLOBEX/fund-data/fund-list`
    expect(await ask({ ...world, token }, list)).toMatchObject({ status: 200 })
  })

  it('C10: a member id of the right shape that nobody has is 404', async () => {
    const nobody = MEMBER_DETAIL.replace(MEMBER, '00000000-0000-4000-8000-000000000000')
    expect(await ask(world, nobody)).toMatchObject({ status: 404 })
  })

  it('C10: a member of one fund is none of another', async () => {
    expect(await ask(world, MEMBER_DETAIL.replace('SUPER1', 'SUPER2'))).toMatchObject({ status: 404 })
  })
})

describe('C10: who may do what', () => {
  it('C10: alice is Administrator at GLOBEX too, bob reads there, and carol is nobody to these clients', async () => {
    const { gateway } = world
    const alice = await issueToken(gateway, { scope: 'fund.maintain target:b/GLOBEX' })
    expect(alice.scope).toBe('fund.maintain target:b/GLOBEX')
    const asBob = { client: 'globex-ledger', username: 'bob' }
    const bob = await issueToken(gateway, { ...asBob, scope: 'fund.maintain fund.read target:b/GLOBEX' })
    expect(bob.scope).toBe('fund.read target:b/GLOBEX')
    const detail = `${API}/f/GLOBEX/GROWTH/fund-data/fund-detail`
    const as = { gateway, token: bob.access_token }
    expect(await data(detail, as)).toMatchObject({ Code: 'GROWTH' })
    expectFault(await write(as, detail, '{}'), 'insufficient_scope')
    await expect(issueToken(gateway, { username: 'carol', scope: 'openid' })).rejects.toThrow('invalid_grant')
    await expect(issueToken(gateway, { ...asBob, username: 'alice', scope: 'openid' })).rejects.toThrow(
      'invalid_grant',
    )
  })
})

describe('C10: writes', () => {
  const inAWorld = (title: string, test: (own: World) => Promise<void>) => {
    it(title, async () => {
      const own = await openWorld()
      await test(own).finally(() => own.gateway.close())
    })
  }
  const done = { status: 200, body: '{"Errors":[],"Data":{}}' }
  const detail = `${SUPER1}/fund-data/fund-detail`

  inAWorld('C10: a POST in XML changes what a GET then returns in JSON', async (own) => {
    const before = await data(MEMBER_DETAIL, own)
    const xml =
      '<Member><Status>Suspended</Status><PersonalDetails><LastName>O\u2019Brien</LastName></PersonalDetails>' +
      '<AccountBalance>12.50</AccountBalance></Member>'
    expect(await write(own, MEMBER_DETAIL, xml, 'xml')).toMatchObject(done)
    expect(await data(MEMBER_DETAIL, own)).toEqual({
      ...before,
      Status: 'Suspended',
      AccountBalance: 12.5,
      PersonalDetails: { ...(before['PersonalDetails'] as object), LastName: 'O\u2019Brien' },
    })
  })

  inAWorld('C10: a POST in JSON or as a form changes what a GET then returns in XML', async (own) => {
    expect(await write(own, detail, '{"Name":"One","MemberLimit":9}')).toMatchObject(done)
    const read = async () => (await ask(own, detail, { headers: { Accept: 'application/xml' } })).body
    expect(await read()).toMatch(/<Name>One<\/Name>.*<MemberLimit type="number">9<\/MemberLimit>/)
    expect(await write(own, detail, 'Name=Two+%26+more&MemberLimit=8&Tags=a&Tags=b', 'form')).toMatchObject(
      done,
    )
    const text = await read()
    expect(text).toMatch(/<Name>Two &amp; more<\/Name>.*<MemberLimit type="number">8<\/MemberLimit>/)
    expect(text).toContain('<Tags type="array"><Tag>a</Tag><Tag>b</Tag></Tags>')
  })

  inAWorld('C10: merges the given fields, nested objects too, and changes nothing else', async (own) => {
    const before = await data(detail, own)
    const body = '{"ContactDetails":{"Address":{"Locality":"Perth"}},"TotalAssets":null}'
    expect(await write(own, detail, body)).toMatchObject(done)
    const contact = before['ContactDetails'] as { Address: object }
    expect(await data(detail, own)).toEqual({
      ...before,
      TotalAssets: null,
      ContactDetails: { ...contact, Address: { ...contact.Address, Locality: 'Perth' } },
    })
    const other = detail.replace('SUPER1', 'SUPER2')
    expect(await data(other, own)).toEqual(await data(other))
  })

  it.each([
    ['an unknown field', '{"Colour":"red"}', 'Colour'],
    ['an unknown nested field', '{"ContactDetails":{"Fax":"1"}}', 'Fax'],
    ['an ill-typed field', '{"MemberLimit":"six"}', 'MemberLimit'],
    ['an ill-typed nested field', '{"ContactDetails":{"Address":{"Locality":7}}}', 'Locality'],
    ['a list that is none', '{"Tags":"a"}', 'Tags'],
    ['a date that is none', '{"EstablishedOn":"yesterday"}', 'EstablishedOn'],
    ['a field that is not to be changed', '{"Code":"OTHER"}', 'Code'],
  ])('C10: %s is 400 naming it, and nothing changes', async (_what, body, field) => {
    const before = await data(detail)
    expectFault(await write(world, detail, body), 'body_invalid', { say: field })
    expect(await data(detail)).toEqual(before)
  })

  it('C10: in XML and forms too', async () => {
    const xml = '<a><MemberLimit>six</MemberLimit></a>'
    const refused = await write(world, detail, xml, 'xml')
    expect(refused.status).toBe(400)
    expect(refused.body).toContain('MemberLimit')
    expectFault(await write(world, detail, 'Colour=red', 'form'), 'body_invalid', { say: 'Colour' })
  })

  inAWorld('C10: fund-create needs Code and Name, and makes a fund that can be read at once', async (own) => {
    const create = (body: string) => write(own, `${ACME}/fund-create`, body)
    expectFault(await create('{"Name":"New"}'), 'body_invalid', { say: 'Code' })
    expectFault(await create('{"Code":"NEW1"}'), 'body_invalid', { say: 'Name' })
    expect(await create('{"Code":"NEW1","Name":"New fund"}')).toMatchObject(done)
    expect(await data(`${ACME}/fund-list`, own)).toMatchObject({ TotalCount: 3 })
    expect(await data(detail.replace('SUPER1', 'NEW1'), own)).toMatchObject({
      Code: 'NEW1',
      Name: 'New fund',
    })
    const { scope } = await issueToken(own.gateway, { scope: 'fund.read target:f/ACME/NEW1' })
    expect(scope).toBe('fund.read target:f/ACME/NEW1')
  })

  inAWorld('C10: a taken Code is 400', async (own) => {
    const response = await write(own, `${ACME}/fund-create`, '{"Code":"SUPER1","Name":"Again"}')
    expect(response.status).toBe(400)
    expect(response.body).toContain('Code')
    expect(await data(`${ACME}/fund-list`, own)).toMatchObject({ TotalCount: 2 })
  })
})

describe('C10: where it is served', () => {
  it('C10: on loopback, both URLs alike and following the port', () => {
    const { authUrl, baseUrl, port, configuration } = world.gateway
    expect([authUrl, baseUrl]).toEqual(Array(2).fill(`http://127.0.0.1:${String(port)}`))
    expect(configuration.vendor).toBe('postern')
  })
})
