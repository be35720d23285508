import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authorizeUrl, CALLBACK, VERIFIER } from '../support/audited-people.ts'
import { askAsMachine, withClient, withMachines } from '../support/machines.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { Person } from '../support/person.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

/** C6.1.3: what a client may choose about the answers that it gets. */

const CUSTOMER = {
  kind: 'customer',
  grants: ['password', 'refresh_token'],
  agreement: '2026-01-15',
  businesses: ['ACME'],
  scopes: ['openid', 'offline_access', 'fund.read'],
} as const

let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({
    keeps: 'nothing',
    change: (loaded) => {
      const users = Object.fromEntries(
        Object.entries(loaded.directory.users).map(([name, user]) => [
          name,
          { ...user, customers: [...user.customers, 'strict', 'worded'] },
        ]),
      )
      const all = withMachines({ ...loaded, directory: { ...loaded.directory, users } })
      const ledgerline = { ...all.directory.clients['ledgerline']!, answerScope: 'asked' as const }
      const clients = { ...all.directory.clients, ledgerline }
      const worded = withClient({ ...all, directory: { ...all.directory, clients } }, 'worded', {
        ...CUSTOMER,
        answerScope: 'asked',
      })
      return withClient(worded, 'strict', { ...CUSTOMER, strictRfc6749: true })
    },
  })
})
afterAll(() => gateway.close())

const SCOPE = 'openid offline_access fund.read target:b/ACME'
const login = (client: string, more: Readonly<Record<string, string>> = {}): Promise<OAuthAnswer> =>
  postForm(gateway, '/connect/token', {
    client,
    params: { grant_type: 'password', username: 'alice', password: 'alice-password', scope: SCOPE, ...more },
  })
const refresh = (client: string, token: string, scope?: string): Promise<OAuthAnswer> =>
  postForm(gateway, '/connect/token', {
    client,
    params: { grant_type: 'refresh_token', refresh_token: token, ...(scope !== undefined && { scope }) },
  })

describe('C6.1.3: strictRfc6749 of a client', () => {
  it('C6.1.3: gives it no-store and Bearer, and everybody else what they had', async () => {
    const strict = await login('strict')
    expect([strict.json.token_type, strict.headers.get('cache-control')]).toEqual(['Bearer', 'no-store'])
    const usual = await login('acme-books')
    expect([usual.json.token_type, usual.headers.get('cache-control')]).toEqual(['bearer', 'no-cache'])
    const again = await refresh('strict', strict.json.refresh_token)
    expect([again.json.token_type, again.headers.get('cache-control')]).toEqual(['Bearer', 'no-store'])
  })

  it('C6.1.3: holds for its refusals, but a failed authentication is that of everybody: it tells not who exists', async () => {
    const refused = await login('strict', { scope: 'no.such' })
    expect([refused.status, refused.headers.get('cache-control')]).toEqual([400, 'no-store'])
    const answers = await Promise.all(
      ['strict', 'acme-books', 'nobody'].map(async (client) => {
        const params = { grant_type: 'password' }
        const { status, headers, json } = await postForm(gateway, '/connect/token', {
          client,
          secret: 'no',
          params,
        })
        return [status, headers.get('cache-control'), headers.get('www-authenticate'), json]
      }),
    )
    expect(answers[0]).toEqual([400, 'no-cache', null, expect.objectContaining({ error: 'invalid_client' })])
    expect(answers).toEqual([answers[0], answers[0], answers[0]])
  })
})

describe('C6.1.3: answerScope asked', () => {
  it('C6.1.3: answers what was granted in the words that asked for it, and the target beside it', async () => {
    const { json } = await login('worded', { scope: 'fund.read phone target:b/ACME openid' })
    expect(json).toMatchObject({ scope: 'fund.read target:b/ACME openid', target: 'b/ACME' })
    expect((await login('worded', { scope: 'openid' })).json).not.toHaveProperty('target')
    const usual = (await login('acme-books')).json
    expect([usual.scope, Object.hasOwn(usual, 'target')]).toEqual([SCOPE, false])
  })

  it('C6.1.3, C5.4: a chosen business is target:b, also at a refresh, where target:b means that of the family', async () => {
    const person = new Person(gateway.authUrl)
    const url = authorizeUrl({ scope: 'openid offline_access fund.read target:b' })
    const page = await person.logIn(await person.open(url))
    const { location } = await person.submit(page, { decision: 'allow', business: 'ACME' })
    const code = location?.searchParams.get('code') ?? ''
    const params = { grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER }
    const { json } = await postForm(gateway, '/connect/token', { client: 'ledgerline', params })
    expect(json).toMatchObject({ scope: 'openid offline_access fund.read target:b', target: 'b/ACME' })
    const again = (await refresh('ledgerline', json.refresh_token)).json
    expect(again).toMatchObject({ scope: 'openid offline_access fund.read target:b', target: 'b/ACME' })
    const narrower = (await refresh('ledgerline', again.refresh_token, 'fund.read target:b')).json
    expect(narrower).toMatchObject({ scope: 'fund.read target:b', target: 'b/ACME' })
  })

  it('C6.1.7: a bare target:b at a refresh means the target of the login for everybody, and is invalid_scope where there is none', async () => {
    const usual = (await login('acme-books')).json.refresh_token as string
    const { json } = await refresh('acme-books', usual, 'fund.read target:b')
    expect(json).toMatchObject({ scope: 'fund.read target:b/ACME' })
    for (const client of ['acme-books', 'worded']) {
      const untargeted = (await login(client, { scope: 'openid offline_access' })).json
        .refresh_token as string
      expect((await refresh(client, untargeted, 'openid target:b')).json.error).toBe('invalid_scope')
    }
  })

  it('C6.1.5a: of a machine tells the business that nobody named', async () => {
    expect((await askAsMachine(gateway)).json).not.toHaveProperty('target')
  })
})
