import { describe, expect, it } from 'vitest'
import { openFlow, UserAgent } from '../support/user-agent.ts'

/** Addresses that have no page, as a person meets them. */

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const asking = (accept?: string): UserAgent =>
  new UserAgent(openFlow(), accept === undefined ? {} : { accept })

describe('C2.3 an address outside /api that has no page', () => {
  it.each(['/', '/conect/authorize', '/connect/nothing', '/.well-known/nothing', '/a/<b>'])(
    'C2.3 %s is a small page for a browser, still 404, and leads on',
    async (path) => {
      const seen = await asking(BROWSER).get(encodeURI(path))
      expect([seen.status, seen.headers['Content-Type']]).toEqual([404, 'text/html; charset=utf-8'])
      expect(seen.headers).toMatchObject({ Vary: 'Accept', 'X-Frame-Options': 'DENY' })
      expect(seen.headers).not.toHaveProperty('Set-Cookie')
      expect(seen.text).toContain('href="/connect/account"')
      expect(seen.text).not.toContain('nothing')
    },
  )

  it('C2.3 / does not tell people that they mistyped it', async () => {
    expect((await asking(BROWSER).get('/')).text).toContain('<h1>Postern</h1>')
    expect((await asking(BROWSER).get('/x')).text).toContain('There is no page at this address')
  })

  it.each([undefined, '*/*', 'application/json', 'application/json, text/html', 'text/html;q=0', 'text/*'])(
    'C2.3 with Accept %s it is an envelope',
    async (accept) => {
      expect((await asking(accept).get('/nothing')).text).toBe('"outside"')
    },
  )

  it.each(['/api', '/api/1.0/nothing'])('C2.3 %s is an envelope for a browser too', async (path) => {
    expect((await asking(BROWSER).get(path)).text).toBe('"outside"')
  })

  it('C2.3 a form that is posted there gets an envelope', async () => {
    expect((await asking(BROWSER).post('/', { a: 'b' })).text).toBe('"outside"')
  })

  it('C2.3 each is recorded as the 404 that it is', async () => {
    const agent = asking(BROWSER)
    await agent.get('/nothing')
    expect(agent.service.decisions.map(({ fault, status }) => [fault?.code, status])).toEqual([
      ['outside', 404],
    ])
  })
})
