import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { spawnPostern, WITHOUT_WAITS, type SpawnedPostern } from '../support/spawn-postern.ts'
import { UPSTREAM_WORLD } from '../support/worker-pool.ts'
import { walkToCode, type WalkedCode } from '../support/code-walk.ts'

/** C6.1.6 and C6.2 over real sockets, by two worker processes on one store. */

const CALLBACK = 'http://127.0.0.1:8090/callback'
const SCOPE = 'openid offline_access business.fund.list target:b'

let postern: SpawnedPostern
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-code-flow-'))
  const config = join(folder, 'two-workers.yaml')
  await writeFile(config, `extends: ${UPSTREAM_WORLD}\nworkers: 2\n${WITHOUT_WAITS}\n`)
  postern = await spawnPostern({ config })
})
afterAll(async () => {
  await postern.stop()
  await rm(folder, { recursive: true })
})

const walk = (params: Readonly<Record<string, string>> = {}): Promise<WalkedCode> =>
  walkToCode({
    authUrl: postern.authUrl,
    params: { client_id: 'ledgerline', redirect_uri: CALLBACK, scope: SCOPE, state: 'x', ...params },
    username: 'alice',
    business: 'ACME',
  })

const redeem = ({ code, verifier }: WalkedCode, client = 'ledgerline'): Promise<OAuthAnswer> =>
  postForm(postern, '/connect/token', {
    client,
    params: {
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    },
  })

const refresh = (token: string): Promise<OAuthAnswer> =>
  postForm(postern, '/connect/token', {
    client: 'ledgerline',
    params: { grant_type: 'refresh_token', refresh_token: token },
  })

const userinfo = async (token: unknown): Promise<number> => {
  const headers = { authorization: `Bearer ${String(token)}` }
  return (await fetch(`${postern.baseUrl}/api/1.0/u/connect/userinfo`, { headers })).status
}

const MANY = 20

/** What many redemptions of one code at once came to. */
async function redeemAtOnce(): Promise<readonly OAuthAnswer[]> {
  for (;;) {
    const walked = await walk()
    const answers = await Promise.all(Array.from({ length: MANY }, () => redeem(walked)))
    // A store that is asked for more than it can do in time says so (T5.5): a busy machine tells nothing of the rest.
    if (answers.every(({ status }) => status !== 503)) return answers
  }
}

/** As a client does that is told to try again. */
async function refreshPatiently(token: string): Promise<OAuthAnswer> {
  for (;;) {
    const answer = await refresh(token)
    if (answer.status !== 503) return answer
  }
}

describe('C6.1.6, C6.1.7 by two workers', () => {
  it('C6.2 login, choice and consent may each meet another worker', async () => {
    const walked = await walk()
    expect(walked.answer.get('iss')).toBe(postern.authUrl)
    const { json, status } = await redeem(walked)
    expect([status, json.scope]).toEqual([200, SCOPE.replace('target:b', 'target:b/ACME')])
    expect(await userinfo(json.access_token)).toBe(200)
  })

  it('C6.1.6 of 20 parallel redemptions of one code exactly one succeeds; its tokens are revoked', async () => {
    const answers = await redeemAtOnce()
    const good = answers.filter(({ status }) => status === 200)
    expect(good).toHaveLength(1)
    expect(answers.filter(({ json }) => json.error === 'invalid_grant')).toHaveLength(MANY - 1)
    expect((await refresh(good[0]?.json.refresh_token)).json.error).toBe('invalid_grant')
    // Every process hears of it within a second (C4.4): both must have refused it by then.
    await expect
      .poll(async () => Promise.all(Array.from({ length: 8 }, () => userinfo(good[0]?.json.access_token))), {
        timeout: 5000,
      })
      .toEqual(Array<number>(8).fill(401))
  })

  it('C6.1.6 while 20 others try with another client, its own gets the tokens', async () => {
    const walked = await walk()
    const thieves = Array.from({ length: MANY }, () => redeem(walked, 'acme-books'))
    const own = await redeem(walked)
    expect(own.status).toBe(200)
    for (const { status } of await Promise.all(thieves)) expect([400, 503]).toContain(status)
    expect(await userinfo(own.json.access_token)).toBe(200)
  })

  it('C6.1.7 20 parallel refreshes inside the grace all give the same successor, and each access token works', async () => {
    const first = (await redeem(await walk())).json.refresh_token
    const answers = await Promise.all(Array.from({ length: MANY }, () => refreshPatiently(first)))
    expect(answers.map(({ status }) => status)).toEqual(Array(MANY).fill(200))
    const successors = new Set(answers.map(({ json }) => json.refresh_token))
    expect([...successors]).toEqual([expect.not.stringContaining(first)])
    expect(new Set(answers.map(({ json }) => json.access_token)).size).toBe(MANY)
    const seen = await Promise.all(answers.map(({ json }) => userinfo(json.access_token)))
    expect(seen).toEqual(Array(MANY).fill(200))
    expect((await refresh([...successors][0])).status).toBe(200)
    // Its successor has been used: whoever comes with the first now has lost it to somebody (C6.1.7).
    expect((await refresh(first)).json.error).toBe('invalid_grant')
    expect((await refresh([...successors][0])).json.error).toBe('invalid_grant')
  })
})

describe('C6.2.4 codes for many at once, of two workers on one store', () => {
  const CROWD = 100
  const challenged = (): { readonly url: string; readonly verifier: string } => {
    const verifier = randomBytes(32).toString('base64url')
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: 'ledgerline',
      redirect_uri: CALLBACK,
      scope: SCOPE.replace('target:b', 'target:b/ACME'),
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    })
    return { url: `${postern.authUrl}/connect/authorize?${query.toString()}`, verifier }
  }

  it(`C6.2.4 ${CROWD} requests of one session get a code each, and each code its own tokens; or the client is told why not`, async () => {
    const { cookie } = await walk({ scope: SCOPE.replace('target:b', 'target:b/ACME') })
    const minted = await Promise.all(
      Array.from({ length: CROWD }, async () => {
        const { url, verifier } = challenged()
        const response = await fetch(url, { redirect: 'manual', headers: { cookie } })
        const answer = new URL(response.headers.get('location') ?? '').searchParams
        return { code: answer.get('code') ?? '', verifier, answer, cookie }
      }),
    )
    // A store that is asked for more than it can do in time says so (T5.5): on a busy machine, that is no fault.
    const refused = minted.filter(({ code }) => code === '').map(({ answer }) => answer.get('error'))
    expect(refused.filter((error) => error !== 'temporarily_unavailable')).toEqual([])
    const codes = minted.filter(({ code }) => code !== '')
    expect(new Set(codes.map(({ code }) => code)).size).toBe(CROWD - refused.length)
    expect(codes.length).toBeGreaterThan(0)
    const seen = new Set<string>()
    for (const walked of codes.slice(0, MANY)) {
      const { status, json } = await redeem(walked)
      expect(status).toBe(200)
      seen.add(json.refresh_token)
    }
    expect(seen.size).toBe(Math.min(MANY, codes.length))
  })

  it('C6.3.5 of 50 logins of one person at once each ends in a code or in a page that says to try again', async () => {
    const ends = await Promise.allSettled(Array.from({ length: 50 }, () => walk()))
    const refusals = ends.flatMap((end) => (end.status === 'rejected' ? [String(end.reason)] : []))
    for (const refusal of refusals) expect(refusal).toMatch(/no code: 503 .*try again shortly/is)
    expect(refusals.length).toBeLessThan(50)
  })
})
