/** T6.4 T6.7 T6.8: attacks on the links by which people set their password. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { administered } from '../support/administered.ts'
import { auditRecords, recordsOf } from '../support/audit-files.ts'
import { wholeTrail } from '../support/audited-people.ts'
import { patientGuessing } from '../support/guessing.ts'
import {
  askOften,
  addUser,
  ask,
  CHOSEN,
  csrfIn,
  isPasswordOf,
  isSet,
  makeLink,
  openLink,
  withoutId,
} from '../support/password-links.ts'
import { sized } from '../support/long.ts'
import { Person } from '../support/person.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { form, type Sent } from '../support/requests.ts'
import { shared } from '../support/shared.ts'
import type { StartedPostern } from '../support/start-postern.ts'

/** Wrong passwords are tried often here: nobody waits for that. */
const served = shared(() => administered({ keeps: 'trail', change: patientGuessing }))

let users = 0
/** Somebody whom no other test knows, with a link. */
async function invited(more: object = {}, open: () => ReturnType<typeof served> = served) {
  const world = await open()
  users += 1
  const username = `dora${users}`
  const subject = await addUser(world, username, more)
  return { ...world, username, subject, ...(await makeLink(world, username)) }
}

/** What is written to the store from now on, until it is asked for: `create session` and the like. */
function writesOf({ world }: StartedPostern) {
  const { store } = world.state
  const spies = (['create', 'replace', 'remove', 'removeBy', 'append'] as const).map((name) =>
    vi.spyOn(store, name as 'create'),
  )
  return (): readonly string[] =>
    spies.flatMap((spy) => {
      const done = spy.mock.calls.map(([kind]) => `${spy.getMockName()} ${kind}`)
      spy.mockRestore()
      return done
    })
}

/** Records of the trail, without those of the service's own keys, which it makes while it serves. */
const recordsIn = (service: StartedPostern): number =>
  auditRecords(service).filter(({ event }) => event !== 'keys.signing').length

const cookieSet = ({ headers }: RawResponse): string => headers['set-cookie'] ?? ''

describe('T6.7 a link that is used more than once', () => {
  it('T6.7 C6.3.7: of 20 uses at once, each with another password, one sets its own, and 19 get the page of a link that is over', async () => {
    const { code, service, subject, username } = await invited()
    const tries = await Promise.all(Array.from({ length: 20 }, () => openLink(service, code)))
    const seen = await Promise.all(tries.map(({ choose }, n) => choose(`${CHOSEN} ${n}`)))
    const statuses = seen.map(({ status }) => status)
    expect(statuses.toSorted()).toEqual([303, ...Array.from({ length: 19 }, () => 404)])
    expect(seen.filter(isSet)).toHaveLength(1)
    expect(await isPasswordOf(service, username, `${CHOSEN} ${seen.findIndex(isSet)}`)).toBe(true)
    expect(setRecords(service)).toHaveLength(1)
    const sessions = await service.world.state.store.list('session')
    expect(sessions.filter(({ value }) => value['subject'] === subject)).toEqual([])
  })

  /** What was set, and did not fail afterwards. */
  const setRecords = (service: StartedPostern) => {
    const all = recordsOf(service, 'user.password_set')
    const failed = new Set(all.map(({ intent }) => intent))
    return all.filter(({ outcome, seq }) => outcome === 'success' && !failed.has(seq))
  }

  it('T6.7 C6.3.7: of 20 links that are made at once one is good at most, and the password is set once', async () => {
    const { call, service, username } = await invited()
    const made = await Promise.all(
      Array.from({ length: 20 }, () => call('POST', `/users/${username}/link`, { body: {} })),
    )
    const codes = made
      .filter(({ status }) => status === 201)
      .map(({ body }) => new URL(body.link as string).searchParams.get('code') ?? '')
    expect(codes.length).toBeGreaterThan(0)
    const opened = await Promise.all(codes.map((code) => openLink(service, code)))
    const good = opened.filter(({ page }) => page.status === 200)
    expect(good).toHaveLength(1)
    const seen = await Promise.all(opened.map(({ choose }) => choose()))
    expect(seen.filter(isSet).length).toBeLessThanOrEqual(1)
    expect(setRecords(service)).toHaveLength(1)
  })

  it('T6.7 C6.3.7: whoever is disabled at the same time is not let in by the link, neither then nor when enabled again', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { call, code, service, username } = await invited({ password: `${CHOSEN}.` })
      const { choose, reload } = await openLink(service, code)
      const [used] = await Promise.all([choose(), call('POST', `/users/${username}/disable`)])
      expect(isSet(used) || used.status === 404).toBe(true)
      for (const password of [CHOSEN, `${CHOSEN}.`])
        expect(await isPasswordOf(service, username, password)).toBe(false)
      expect((await reload()).status).toBe(404)
      expect((await call('POST', `/users/${username}/enable`)).status).toBe(200)
      expect((await openLink(service, code)).page.status).toBe(404)
      expect((await choose('another plain word')).status).toBe(404)
      // What was answered is what is in force.
      expect(await isPasswordOf(service, username, CHOSEN)).toBe(isSet(used))
      expect(await isPasswordOf(service, username, 'another plain word')).toBe(false)
    }
  })

  it('T6.7 C6.3.7: a link that is made while its user is disabled is not good when they are enabled again', async () => {
    for (let round = 0; round < 3; round += 1) {
      const { call, service, username } = await invited()
      const [made] = await Promise.all([
        call('POST', `/users/${username}/link`),
        call('POST', `/users/${username}/disable`),
      ])
      expect([201, 409]).toContain(made.status)
      expect((await call('POST', `/users/${username}/enable`)).status).toBe(200)
      expect(await linksOf(service, username)).toEqual([])
    }
  })

  const linksOf = async ({ world }: StartedPostern, username: string) =>
    (await world.state.store.list('password_link')).filter(({ value }) => value['username'] === username)

  it('T6.7 C6.3.7: of a link and an operator who set a password at once one has the last word, and the link is over', async () => {
    const { call, code, service, username } = await invited()
    const { choose } = await openLink(service, code)
    const [used, set] = await Promise.all([
      choose(),
      call('PUT', `/users/${username}/password`, { body: { password: `${CHOSEN}.` } }),
    ])
    expect([set.status, isSet(used) || used.status === 404]).toEqual([200, true])
    const good = await Promise.all(
      [CHOSEN, `${CHOSEN}.`].map((each) => isPasswordOf(service, username, each)),
    )
    // The operator’s comes later, or the link was over.
    expect(good).toEqual([false, true])
    expect((await openLink(service, code)).page.status).toBe(404)
  })
})

describe('T6.4 a link in other hands', () => {
  const EVIL = 'evil.example'
  const FORGED: readonly (readonly [string, NonNullable<Sent['headers']>])[] = [
    ['Host', { Host: EVIL }],
    ['X-Forwarded-Host', { 'X-Forwarded-Host': EVIL, 'X-Forwarded-Proto': 'https', 'X-Forwarded-Port': '1' }],
    ['Forwarded', { Forwarded: `host=${EVIL};proto=https` }],
    ['X-Original-URL', { 'X-Original-URL': `https://${EVIL}/`, 'X-Rewrite-URL': `https://${EVIL}/` }],
    ['Origin', { Origin: `https://${EVIL}`, Referer: `https://${EVIL}/` }],
    ['X-Forwarded-Prefix', { 'X-Forwarded-Prefix': `//${EVIL}`, 'X-Script-Name': `//${EVIL}` }],
  ]

  it.each(FORGED)(
    'T6.4 C6.3.7: a forged %s does not lead the link elsewhere that an operator orders',
    async (_, headers) => {
      const { service, username } = await invited()
      const token = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
      const admin = { port: Number(new URL(service.adminUrl).port) }
      const { body, status } = await ask(admin, {
        method: 'POST',
        target: `/users/${username}/link`,
        headers: { Authorization: `Bearer ${token}`, ...headers },
      })
      expect(body).not.toContain(EVIL)
      if (status !== 201) return
      const { link } = JSON.parse(body) as { link: string }
      expect(link.startsWith(`${service.authUrl}/connect/link?code=`)).toBe(true)
    },
  )

  it.each(FORGED)(
    'T6.4 C6.3.7: a forged %s leads nobody elsewhere who opens the link',
    async (_, headers) => {
      const { code, service } = await invited()
      const moved = await ask(service, { target: `/connect/link?code=${code}`, headers })
      expect(moved.headers['location']).toBe('/connect/link')
      expect(cookieSet(moved)).not.toContain('Domain')
      const cookie = cookieSet(moved).split(';')[0] ?? ''
      const page = await ask(service, { target: '/connect/link', headers: { ...headers, Cookie: cookie } })
      for (const { body, rawHeaders } of [moved, page])
        expect(body + JSON.stringify(rawHeaders)).not.toContain(EVIL)
      expect(page.body).toContain('<form method="post" action="/connect/link"')
    },
  )

  it.each([
    `https://${EVIL}/connect/link`,
    `//${EVIL}/connect/link`,
    '/connect/link/../link',
    '/connect\\link',
    '/connect/%6cink',
  ])('T6.4 C6.3.7: nor does the target %s', async (path) => {
    const { code, service } = await invited()
    const seen = await ask(service, { target: `${path}?code=${code}` })
    expect([undefined, '/connect/link']).toContain(seen.headers['location'])
    expect(seen.body + JSON.stringify(seen.rawHeaders)).not.toContain(EVIL)
  })

  it('T6.4 C6.3.7: neither code nor password stands in the log, the trail, the metrics, the store or a page', async () => {
    const { code, link, service, username } = await invited({}, () => served.own())
    const pages: RawResponse[] = []
    const see = async (answer: Promise<RawResponse>): Promise<void> => void pages.push(await answer)
    const opened = await openLink(service, code)
    pages.push(opened.page)
    await see(opened.reload())
    await see(opened.send({ password: CHOSEN, again: 'not the same at all' }))
    await see(opened.send({ password: CHOSEN, again: CHOSEN, csrf: 'x' }))
    await see(ask(service, { target: `/connect/link?code=${code}&x=%zz` }))
    await see(ask(service, { target: `/connect/link?code=${code}&code=${code}` }))
    await see(ask(service, { target: `/connect/link?code=${code}x` }))
    for (const method of ['HEAD', 'PUT', 'OPTIONS'])
      await see(ask(service, { method, target: `/connect/link?code=${code}` }))
    const { body, headers } = form({ password: CHOSEN, again: CHOSEN, csrf: opened.csrf, code })
    const posted: Sent = { method: 'POST', target: `/connect/link?code=${code}`, body, headers }
    await see(ask(service, posted))
    await see(opened.choose())
    await see(opened.choose())
    expect(pages.map(({ status }) => status).toSorted()).toEqual(
      [200, 200, 303, 303, 400, 404, 404, 404, 404, 405, 405, 405, 422].toSorted(),
    )
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
    const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text()
    const stored = await Promise.all(
      ['password_link', 'user', 'session'].map((kind) => service.world.state.store.list(kind)),
    )
    const kept = [service.logLines().join(''), wholeTrail(service), metrics, JSON.stringify(stored)]
    expect(kept[0]).toContain('"/connect/link"')
    expect(kept[1]).toContain('user.password_set')
    expect(kept[2]).toContain('postern_requests_total')
    for (const [place, text] of [...kept, ...pages.map((page) => page.body)].entries())
      for (const secret of [code, link, CHOSEN, CHOSEN.replaceAll(' ', '+')])
        expect([place, text.includes(secret)]).toEqual([place, false])
  })

  /** Every answer that a browser may get at the address. */
  async function everyAnswer() {
    const { code, service } = await invited()
    const { choose, moved, page, send } = await openLink(service, code)
    return {
      moved,
      page,
      invalid: await send({ password: 'short', again: 'short' }),
      foreign: await send({ csrf: 'x' }),
      set: await choose(),
      done: await ask(service, { target: '/connect/link?done=password' }),
      over: await choose(),
      unknown: await ask(service, { target: '/connect/link?code=x' }),
      malformed: await ask(service, { target: `/connect/link?code=${code}&x=%zz` }),
      unread: await ask(service, {
        method: 'POST',
        target: '/connect/link',
        body: 'x',
        headers: { 'Content-Type': 'text/plain' },
      }),
    }
  }

  it('T6.4 C6.3.7: no answer lets a browser tell others the address, nor keeps it, and the way to a page shows none', async () => {
    const all = await everyAnswer()
    expect(Object.values(all).map(({ status }) => status)).toEqual([
      303, 200, 422, 303, 303, 200, 404, 404, 400, 400,
    ])
    for (const [name, { headers }] of Object.entries(all))
      expect([name, headers['referrer-policy'], headers['cache-control']]).toEqual([
        name,
        'no-referrer',
        'no-store',
      ])
    for (const { body } of [all.moved, all.foreign, all.set]) expect(body).toBe('')
  })

  it('T6.8 C6.3.7: no page of a link may stand in a frame, send its form elsewhere or load anything from elsewhere', async () => {
    const { foreign, moved, set, ...pages } = await everyAnswer()
    expect([moved, foreign, set].map(({ status }) => status)).toEqual([303, 303, 303])
    for (const [name, { headers }] of Object.entries(pages)) {
      const policy = headers['content-security-policy'] ?? ''
      for (const part of [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "base-uri 'none'",
      ])
        expect([name, policy.includes(part)]).toEqual([name, true])
      expect([name, headers['x-frame-options'], headers['x-content-type-options']]).toEqual([
        name,
        'DENY',
        'nosniff',
      ])
      expect(policy).not.toMatch(/unsafe|\*|data:|https?:/)
    }
  })

  it('T6.4 C6.3.7: a scanner of mail that opens the link, follows it, asks by HEAD or prefetches it uses nothing up and leaves no record', async () => {
    const { code, service, username } = await invited()
    const target = `/connect/link?code=${code}`
    const records = recordsIn(service)
    const writes = writesOf(service)
    for (const headers of [
      {},
      { 'Sec-Purpose': 'prefetch;prerender', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'none' },
      { Purpose: 'prefetch', 'X-Moz': 'prefetch' },
      { 'User-Agent': 'Mozilla/5.0 (compatible; a scanner of links)', Range: 'bytes=0-1023' },
    ]) {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'GET']) await ask(service, { method, target, headers })
      const { cookie, page } = await openLink(service, code, headers)
      expect(page.status).toBe(200)
      await ask(service, { method: 'HEAD', target: '/connect/link', headers: { ...headers, Cookie: cookie } })
    }
    expect(recordsIn(service)).toBe(records)
    // One that posts to what it finds is refused.
    expect((await ask(service, { method: 'POST', target })).status).toBe(400)
    expect(recordsOf(service, 'user.password_set')).toEqual([])
    expect(writes()).toEqual([])
    const { choose } = await openLink(service, code)
    expect(isSet(await choose())).toBe(true)
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(true)
  })

  const OPENED = sized(1000, 10_000)
  it(`T6.4 C6.3.7: ${OPENED} requests for a link and its page write nothing to the store and nothing to the trail`, async () => {
    const { code, service } = await invited()
    await openLink(service, code)
    const records = recordsIn(service)
    const writes = writesOf(service)
    await askOften(service, OPENED, [`/connect/link?code=${code}`, '/connect/link'], code)
    expect(writes()).toEqual([])
    expect(recordsIn(service)).toBe(records)
    expect((await openLink(service, code)).page.status).toBe(200)
  })

  it('T3.9 C6.3.7: neither answer nor work tells whether a code was ever one, or whose', async () => {
    const { choose, cookie, csrf, ...known } = await invited().then(async (person) => ({
      ...person,
      ...(await openLink(person.service, person.code)),
    }))
    const { service } = known
    await choose()
    const never = 'x'.repeat(43)
    const name = cookie.split('=')[0] ?? ''
    const verify = vi.spyOn(service.world.hasher, 'verify')
    const hash = vi.spyOn(service.world.hasher, 'hash')
    const { body, headers } = form({ csrf, password: CHOSEN, again: CHOSEN })
    const seen = await Promise.all(
      [known.code, never].flatMap((code) => [
        ask(service, { target: '/connect/link', headers: { Cookie: `${name}=${code}` } }),
        ask(service, {
          method: 'POST',
          target: '/connect/link',
          body,
          headers: { ...headers, Cookie: `${name}=${code}` },
        }),
      ]),
    )
    expect([verify.mock.calls, hash.mock.calls]).toEqual([[], []])
    verify.mockRestore()
    hash.mockRestore()
    expect(seen.map(({ status }) => status)).toEqual([404, 404, 404, 404])
    expect(new Set(seen.map(withoutId)).size).toBe(1)
    expect(seen[0]?.body).not.toContain(known.username)
  })
})

describe('T6.8 a form of a link that another site sends', () => {
  const changed = async ({ service, username }: Awaited<ReturnType<typeof invited>>): Promise<boolean> =>
    (await isPasswordOf(service, username, CHOSEN)) || recordsOf(service, 'user.password_set').length > 0

  it.each([
    ['Origin', { Origin: 'https://evil.example' }],
    ['Origin, of another port', { Origin: 'http://127.0.0.1:1' }],
    ['Origin, of a host that begins alike', { Origin: 'http://127.0.0.1.evil.example' }],
    ['Sec-Fetch-Site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['Sec-Fetch-Site, of a neighbour', { 'Sec-Fetch-Site': 'same-site' }],
    ['Sec-Fetch-Site, before an Origin that is ours', { 'Sec-Fetch-Site': 'cross-site', Origin: 'null' }],
    ['Sec-Fetch-Site, with two values', { 'Sec-Fetch-Site': 'same-origin, cross-site' }],
  ])('T6.8 C6.3.7: it changes nothing, whatever token it brings: %s', async (_, headers) => {
    const person = await invited()
    const { code, service } = person
    const { choose, reload } = await openLink(service, code)
    const seen = await choose(CHOSEN, headers)
    expect([seen.status, seen.headers['location']]).toEqual([303, '/connect/link'])
    expect(await changed(person)).toBe(false)
    expect((await reload()).status).toBe(200)
    expect(isSet(await choose(CHOSEN, { 'Sec-Fetch-Site': 'same-origin' }))).toBe(true)
  })

  it('T6.8 C6.3.7: a token that is missing, wrong, of another link or of the sign-in page changes nothing', async () => {
    const person = await invited()
    const { code, service } = person
    const opened = await openLink(service, code)
    const other = await invited()
    const login = csrfIn(await ask(service, { target: '/connect/account' }))
    const foreign = (await openLink(service, other.code)).csrf
    expect(new Set([login, foreign, opened.csrf, '']).size).toBe(4)
    for (const csrf of ['', 'x', foreign, login, code, opened.csrf.slice(1), `${opened.csrf}a`]) {
      const seen = await opened.send({ password: CHOSEN, again: CHOSEN, csrf })
      expect([csrf, seen.status, seen.headers['location']]).toEqual([csrf, 303, '/connect/link'])
    }
    const { body, headers } = form({ password: CHOSEN, again: CHOSEN })
    const without = await ask(service, {
      method: 'POST',
      target: '/connect/link',
      body,
      headers: { ...headers, Cookie: opened.cookie },
    })
    expect(without.status).toBe(303)
    expect(await changed(person)).toBe(false)
    expect(isSet(await opened.choose())).toBe(true)
  })

  it('T6.8 C6.3.7: the code counts from its cookie alone: in the query or the form of a post it sets nothing', async () => {
    const person = await invited()
    const { code, service } = person
    const { csrf } = await openLink(service, code)
    const { body, headers } = form({ csrf, code, password: CHOSEN, again: CHOSEN })
    for (const cookie of [
      '',
      'postern-link=x',
      `postern-session-${service.port}=${code}`,
      `postern-link=${code}`,
    ]) {
      const sent: Sent = {
        method: 'POST',
        target: `/connect/link?code=${code}`,
        body,
        headers: { ...headers, Cookie: cookie },
      }
      expect([cookie, (await ask(service, sent)).status]).toEqual([cookie, 404])
    }
    expect(await changed(person)).toBe(false)
  })

  it('T6.8 C6.3.7: fields that are there twice are refused, and nothing is used up', async () => {
    const person = await invited()
    const { code, service } = person
    const { choose, cookie, csrf } = await openLink(service, code)
    const { body, headers } = form({ csrf, password: CHOSEN, again: CHOSEN })
    for (const more of ['password=another+plain+word', 'again=another+plain+word', 'csrf=x']) {
      const sent: Sent = {
        method: 'POST',
        target: '/connect/link',
        body: `${body}&${more}`,
        headers: { ...headers, Cookie: cookie },
      }
      expect([more, (await ask(service, sent)).status]).toEqual([more, 400])
    }
    expect(await changed(person)).toBe(false)
    expect(isSet(await choose())).toBe(true)
  })

  it('T6.8 C6.3.7: of two cookies the first counts, and a second one does not lead the form to another account', async () => {
    const [person, attacker] = [await invited(), await invited()]
    const { service } = person
    const [own, planted] = [await openLink(service, person.code), await openLink(service, attacker.code)]
    const page = await ask(service, {
      target: '/connect/link',
      headers: { Cookie: `${own.cookie}; ${planted.cookie}` },
    })
    expect(page.body).toContain(`for the account ${person.username}`)
    // The page of one link does not set the password of another one.
    const seen = await own.send({ password: CHOSEN, again: CHOSEN }, { Cookie: planted.cookie })
    expect(seen.status).toBe(303)
    for (const { username } of [person, attacker])
      expect([username, await isPasswordOf(service, username, CHOSEN)]).toEqual([username, false])
  })

  it('T6.8 C6.3.7: whoever is signed in stays who they are when a link of somebody else is opened and used', async () => {
    const world = await invited({ password: 'the-first-password' })
    const { service, username } = world
    const person = new Person(service.authUrl)
    const login = await person.open('/connect/account')
    expect((await person.submit(login, { username, password: 'the-first-password' })).text).toContain(
      'Signed in as',
    )
    const other = await invited()
    const both = { Cookie: person.cookie }
    const { cookie, moved, page, send } = await openLink(service, other.code)
    expect([moved.status, page.status]).toEqual([303, 200])
    const done = await send({ password: CHOSEN, again: CHOSEN }, { Cookie: `${both.Cookie}; ${cookie}` })
    expect(isSet(done)).toBe(true)
    expect(cookieSet(done)).toMatch(/^postern-link-\d+=;/)
    expect((await person.open('/connect/account')).text).toContain(username)
    expect(await isPasswordOf(service, username, CHOSEN)).toBe(false)
    expect(await isPasswordOf(service, other.username, CHOSEN)).toBe(true)
  })

  it.each([
    '"><script>alert(1)</script>',
    `' onfocus=alert(1) x='`,
    '</form><form action=//evil.example>',
    '&lt;',
  ])('T6.8 C6.3.7: a password of %s is no part of any page', async (text) => {
    const { code, service, username } = await invited()
    const { choose, send } = await openLink(service, code)
    const password = `${text} and more`
    for (const seen of [await send({ password, again: 'other' }), await choose(password)])
      for (const part of [text, 'alert(1)', 'and more', 'evil']) expect(seen.body).not.toContain(part)
    expect(await isPasswordOf(service, username, password)).toBe(true)
  })
})
