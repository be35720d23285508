/** Values of businesses, as services get them (C8.7). */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { attackUpstream, type AttackedUpstream } from '../support/attacked.ts'
import { directoryEditors } from '../support/directory-editors.ts'
import { bearer, send } from '../support/requests.ts'
import { fillStore, STORED_PASSWORD } from '../support/stored-records.ts'
import { issueToken } from '../support/tokens.ts'

type Methods = Configuration['actions'][number]['methods']
type Upstream = NonNullable<NonNullable<Methods['GET']>['upstream']>

const shaped = (action: string, upstream: Upstream): Configuration['actions'][number] => ({
  level: 'business',
  area: 'fund-data',
  action,
  methods: { GET: { scopes: { any: ['fund.read'] }, versions: [1], items: {}, upstream } },
})

const SECRET = 'sesame-of-acme'

const VALUES = {
  ACME: {
    db: 'acme_prod',
    tenant: 't-7',
    key: { secret: SECRET },
    path: 'a b',
    odd: 'a/b',
    more: 'a&of=t-8',
  },
  GLOBEX: {
    db: 'globex_prod',
    tenant: 't-8',
    key: { secret: 'sesame-of-globex' },
    path: 'c',
    odd: 'x',
    more: 'y',
  },
} as const

/** The businesses of the demo, with values. */
const withValues = ({ directory, ...rest }: Configuration): Configuration => ({
  ...rest,
  directory: {
    ...directory,
    businesses: Object.fromEntries(
      Object.entries(directory.businesses).map(([code, business]) => [
        code,
        { ...business, values: VALUES[code === 'ACME' ? code : 'GLOBEX'] },
      ]),
    ),
  },
})

let attacked: AttackedUpstream
beforeAll(async () => {
  attacked = await attackUpstream({
    change: (loaded) => {
      const configured = withValues(loaded)
      const actions = [
        shaped('placed', {
          path: '/{business.db}/x{business.tenant}.json',
          query: { tenant: '{business.tenant}', where: '{business.path}' },
          headers: { 'X-Key': 'Key {business.key}' },
        }),
        shaped('odd', { path: '/{business.odd}/x' }),
        shaped('more', { path: '/x', query: { more: '{business.more}', of: '{business.tenant}' } }),
        shaped('plain', { path: '/plain/{business}' }),
      ]
      return { ...configured, actions: [...configured.actions, ...actions] }
    },
  })
})
afterAll(() => attacked.close())
beforeEach(() => attacked.forget())

const BASE = '/api/1.0/b'

const ALICE = 'fund.read business.fund.list'

/** A call at a business, by somebody who may do it there. */
async function call(business: string, action: string) {
  const scope = `${ALICE} target:b/${business}`
  const { access_token } = await issueToken(attacked.gateway, { scope })
  return send(attacked.gateway, {
    target: `${BASE}/${business}/fund-data/${action}`,
    headers: bearer(access_token),
  })
}

describe('C8.7, T2.13 {business.KEY}', () => {
  it('C8.7 is the value of the business that is called, in path, query and headers', async () => {
    for (const business of ['ACME', 'GLOBEX'] as const) {
      attacked.forget()
      expect((await call(business, 'placed')).status).toBe(200)
      const { db, tenant, key, path } = VALUES[business]
      const [request, ...more] = attacked.received()
      expect(more).toEqual([])
      expect(request?.target).toBe(
        `/${db}/x${tenant}.json?tenant=${tenant}&where=${encodeURIComponent(path)}`,
      )
      expect(request?.headers['x-key']).toEqual([`Key ${key.secret}`])
      const other = JSON.stringify(VALUES[business === 'ACME' ? 'GLOBEX' : 'ACME'].key.secret)
      expect(JSON.stringify(request)).not.toContain(other.slice(1, -1))
    }
  })

  it('C8.7 that cannot stand where it is named is 500, and nothing is sent', async () => {
    expect((await call('ACME', 'odd')).status).toBe(500)
    expect((await call('GLOBEX', 'odd')).status).toBe(200)
    expect(attacked.received().map(({ target }) => target)).toEqual(['/x/x'])
    const line = attacked.gateway.log().findLast(({ reason }) => reason === 'unsendable_value')
    expect(JSON.stringify(line)).not.toContain('a/b')
  })

  it('C8.7, T2.10 that hides a name of the query is 500, since no client can change it, and nothing is sent', async () => {
    expect((await call('ACME', 'more')).status).toBe(500)
    expect((await call('GLOBEX', 'more')).status).toBe(200)
    expect(attacked.received().map(({ target }) => target)).toEqual(['/x?more=y&of=t-8'])
    const line = attacked.gateway.log().findLast(({ reason }) => reason === 'unsendable_value')
    expect(line?.['detail']).toContain('{business.more} cannot be sent')
  })

  it('C8.7 that a business of the store lacks is 500, and nothing is sent; other operations answer', async () => {
    const { gateway } = attacked
    const editors = await directoryEditors(gateway.configuration, gateway.world, () => Promise.resolve())
    const secret = await fillStore(editors)
    const scope = 'fund.read target:b/STORED'
    const ann = { client: 'tally', secret, username: 'ann', password: STORED_PASSWORD, scope }
    const headers = bearer((await issueToken(gateway, ann)).access_token)
    const to = (action: string) => send(gateway, { target: `${BASE}/STORED/fund-data/${action}`, headers })
    const answer = await to('placed')
    expect([answer.status, JSON.parse(answer.body).Errors[0].Code]).toEqual([500, 'API_INTERNAL_ERROR'])
    expect(attacked.received()).toEqual([])
    const line = gateway.log().findLast(({ event }) => event === 'call')
    expect(line).toMatchObject({ reason: 'business_value_missing', business: 'STORED' })
    expect(line?.['detail']).toBe('{business.key} is none of its values')
    expect((await to('plain')).status).toBe(200)
  })

  it('C8.7 that is a secret stands in no line of the log', () => {
    expect(attacked.gateway.logLines().join('')).not.toContain(SECRET)
  })
})
