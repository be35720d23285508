import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postForm } from '../../support/oauth.ts'
import { Person, type Shown } from '../../support/person.ts'
import { sendRaw } from '../../support/raw-http.ts'
import { requestBytes } from '../../support/requests.ts'
import { startPostern, type StartedPostern } from '../../support/start-postern.ts'

/** T6.2: who stands between client and service, or beside the person, with a pushed request (C6.2.1a). */

const CALLBACK = 'https://app.test/callback'
const OTHER = 'https://other.test/callback'
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

let postern: StartedPostern

beforeAll(async () => {
  postern = await startPostern({
    keeps: 'nothing',
    change: ({ directory, ...rest }) => {
      const ledgerline = { ...directory.clients['ledgerline']!, redirectUris: [CALLBACK, OTHER] }
      const rival = { ...ledgerline, redirectUris: [OTHER] }
      return { ...rest, directory: { ...directory, clients: { ...directory.clients, ledgerline, rival } } }
    },
  })
})
afterAll(() => postern.close())

const ASKED = {
  redirect_uri: CALLBACK,
  response_type: 'code',
  scope: 'openid fund.read target:b/ACME',
  state: 'of the client',
  nonce: 'n-1',
  code_challenge: challengeOf(VERIFIER),
  code_challenge_method: 'S256',
  prompt: 'consent',
}

const push = async (client = 'ledgerline', more: Readonly<Record<string, string>> = {}): Promise<string> => {
  const { json, status } = await postForm(postern, '/connect/par', {
    client,
    secret: 'ledgerline-secret',
    params: { ...ASKED, ...more },
  })
  expect(status).toBe(201)
  return json.request_uri as string
}

const referTo = (uri: string, client = 'ledgerline'): string =>
  new URLSearchParams({ client_id: client, request_uri: uri }).toString()

const open = (query: string): Promise<Shown> =>
  new Person(postern.authUrl).open(`/connect/authorize?${query}`)

/** Logs in at what this query shows, and allows it. */
async function allow(query: string): Promise<Shown> {
  const person = new Person(postern.authUrl)
  const consent = await person.logIn(await person.open(`/connect/authorize?${query}`))
  return person.submit(consent, { decision: 'allow' })
}

const redeem = (code: string, verifier = VERIFIER) =>
  postForm(postern, '/connect/token', {
    client: 'ledgerline',
    secret: 'ledgerline-secret',
    params: {
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    },
  })

const expectRefused = ({ location, status, text }: Shown): void => {
  expect(location).toBeUndefined()
  expect(status).toBe(400)
  expect(text).toContain('<dd>invalid_request_uri</dd>')
}

/** The code goes to the client as it has asked, for what it has asked, and to nobody else. */
async function expectAsPushed({ location }: Shown): Promise<void> {
  expect(`${location?.origin ?? ''}${location?.pathname ?? ''}`).toBe(CALLBACK)
  expect(location?.searchParams.get('state')).toBe(ASKED.state)
  const code = location?.searchParams.get('code') ?? ''
  const { json, status } = await redeem(code)
  expect({ status, scope: json.scope }).toEqual({ status: 200, scope: ASKED.scope })
}

describe('T6.2 parameters beside a pushed request', () => {
  it.each([
    ['another redirect of the same client', { redirect_uri: OTHER }],
    ['more scope', { scope: 'openid fund.maintain offline_access target:b/GLOBEX' }],
    ['a state that the attacker knows', { state: 'of the attacker' }],
    ['a challenge that the attacker can meet', { code_challenge: challengeOf('a'.repeat(43)) }],
    ['no challenge', { code_challenge: '', code_challenge_method: '' }],
    ['another way back', { response_mode: 'form_post' }],
    ['no pages', { prompt: 'none' }],
    ['the name of another user', { login_hint: 'greta' }],
    ['a request object', { request: 'eyJhbGciOiJub25lIn0.e30.' }],
  ])('T6.2 C6.2.1a %s counts for nothing', async (_, beside) => {
    const query = `${referTo(await push())}&${new URLSearchParams(beside).toString()}`
    await expectAsPushed(await allow(query))
  })

  it('T6.2 C6.2.1a they count for nothing in the forms of the pages either', async () => {
    const uri = await push()
    const person = new Person(postern.authUrl)
    const login = await person.open(`/connect/authorize?${referTo(uri)}`)
    const beside = new URLSearchParams({ redirect_uri: OTHER, scope: 'openid fund.maintain target:b/ACME' })
    const changed = ({ status, text, location }: Shown): Shown => ({
      status,
      location,
      text: text.replace(/(action="[^"]*)/, `$1&amp;${beside.toString().replaceAll('&', '&amp;')}`),
    })
    const consent = await person.logIn(changed(login))
    await expectAsPushed(await person.submit(changed(consent), { decision: 'allow' }))
  })

  it.each([
    ['a second reference', (uri: string) => `${referTo(uri)}&request_uri=${encodeURIComponent(uri)}`],
    ['a document of somebody else', (uri: string) => `${referTo(uri)}&request_uri=https://evil.test/r`],
    ['one that stands before', (uri: string) => `request_uri=https://evil.test/r&${referTo(uri)}`],
    ['a name in other bytes', (uri: string) => `${referTo(uri)}&%72equest_uri=urn:other`],
  ])('T6.2 C6.2.1a %s is a page, though a redirect stands beside', async (_, queryOf) => {
    const query = queryOf(await push())
    const target = `/connect/authorize?${query}&${new URLSearchParams(ASKED).toString()}`
    const answer = await sendRaw(postern.port, requestBytes({ target }))
    expect({ status: answer.status, location: answer.headers['location'] }).toEqual({
      status: 400,
      location: undefined,
    })
    expect(answer.body).toContain('<dd>invalid_request_uri</dd>')
  })
})

describe('T6.2 the pushed request of somebody else', () => {
  it('T6.2 C6.2.1a one client’s reference under another client’s name is a page, and stays good', async () => {
    const uri = await push()
    expectRefused(
      await open(`${referTo(uri, 'rival')}&${new URLSearchParams({ redirect_uri: OTHER }).toString()}`),
    )
    await expectAsPushed(await allow(referTo(uri)))
  })

  it('T3.9 C6.2.1a another client’s reference is answered as one that does not exist', async () => {
    const plainly = ({ status, text }: Shown) => ({ status, text: text.replace(/[0-9a-f]{32}/, '') })
    const unknown = `urn:ietf:params:oauth:request_uri:${'a'.repeat(43)}`
    const [theirs, none] = [await open(referTo(await push(), 'rival')), await open(referTo(unknown, 'rival'))]
    expectRefused(theirs)
    expect(plainly(theirs)).toEqual(plainly(none))
  })

  it('T6.2 C6.2.1a a page for one request cannot be sent for another client', async () => {
    const uri = await push()
    const person = new Person(postern.authUrl)
    const login = await person.open(`/connect/authorize?${referTo(uri)}`)
    const swapped = { ...login, text: login.text.replace('client_id=ledgerline', 'client_id=rival') }
    expectRefused(await person.logIn(swapped))
  })

  it('T6.2 C6.2.1a a public client cannot push in the name of one with a secret, nor without its own', async () => {
    for (const client_id of ['ledgerline', 'nobody']) {
      const response = await fetch(`${postern.authUrl}/connect/par`, {
        method: 'POST',
        body: new URLSearchParams({ ...ASKED, client_id }),
      })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: 'invalid_client' })
    }
  })

  it('T6.2 C6.2.1a a code that a swapped request gave is of no use to who cannot meet its challenge', async () => {
    const theirs = await push('ledgerline', { code_challenge: challengeOf('b'.repeat(43)) })
    const { location } = await allow(referTo(theirs))
    const { json } = await redeem(location?.searchParams.get('code') ?? '')
    expect(json.error).toBe('invalid_grant')
  })

  it('T6.2 C6.2.1a one that was answered gives nothing more, to the same browser or another', async () => {
    const uri = await push()
    const person = new Person(postern.authUrl)
    const consent = await person.logIn(await person.open(`/connect/authorize?${referTo(uri)}`))
    await expectAsPushed(await person.submit(consent, { decision: 'allow' }))
    expectRefused(await person.submit(consent, { decision: 'allow' }))
    expectRefused(await person.open(`/connect/authorize?${referTo(uri)}`))
    expectRefused(await open(referTo(uri)))
  })
})

describe('T6.2 a pushed request that is large', () => {
  /** A form that is so many bytes long with a parameter that nobody reads. */
  const formOfLength = (length: number): string => {
    const known = `${new URLSearchParams({ ...ASKED, client_id: 'ledgerline', client_secret: 'ledgerline-secret' }).toString()}&x=`
    return known + 'x'.repeat(length - known.length)
  }
  const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
  const inChunks = (body: string) =>
    requestBytes({
      method: 'POST',
      target: '/connect/par',
      headers: { ...form, 'Transfer-Encoding': 'chunked' },
      body: `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    })
  const whole = (body: string) =>
    requestBytes({ method: 'POST', target: '/connect/par', headers: form, body })

  it('T6.2 C6.2.1a of up to 16 KiB is kept, and of one byte more is 413, whoever sends it', async () => {
    const before = await postern.world.store.countBy('pushed_request', { client: 'ledgerline' })
    for (const bytes of [whole, inChunks]) {
      const { body, status } = await sendRaw(postern.port, bytes(formOfLength(16 * 1024 + 1)))
      expect({ status, error: JSON.parse(body).error }).toEqual({ status: 413, error: 'invalid_request' })
    }
    expect(await postern.world.store.countBy('pushed_request', { client: 'ledgerline' })).toBe(before)
    for (const bytes of [whole, inChunks])
      expect((await sendRaw(postern.port, bytes(formOfLength(16 * 1024)))).status).toBe(201)
  })
})
