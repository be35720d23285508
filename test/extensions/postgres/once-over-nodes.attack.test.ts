/** Whatever counts once, sent many times at once to two nodes that share a Postgres. */
import { describe, expect, it } from 'vitest'
import type { Client } from '../../../src/base/contracts/people/people.ts'
import { administered } from '../../support/administered.ts'
import { recordsOf } from '../../support/audit-files.ts'
import { assertedBy, assertion, makeClientKey } from '../../support/client-assertions.ts'
import { eventually } from '../../support/eventually.ts'
import { patientGuessing } from '../../support/guessing.ts'
import {
  basic,
  client,
  formOf,
  ISSUER,
  type JsonAnswer,
  requestToken,
  type TestIdentity,
} from '../../support/identity-under-test.ts'
import { needing } from '../../support/machine.ts'
import {
  addUser,
  CHOSEN,
  isPasswordOf,
  isSet,
  makeLink,
  openLink,
  withoutId,
} from '../../support/password-links.ts'
import { makeTables, sharedPostgres } from '../../support/postgres.ts'
import { prover } from '../../support/prover.ts'
import { atEnd, shared } from '../../support/shared.ts'
import { sharedStore } from '../../support/shared-store.ts'
import { answerIn, CALLBACK, challengeOf, UserAgent, VERIFIER } from '../../support/user-agent.ts'
import { openNode } from './support/killed-postgres.ts'

const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/** Two nodes with connections of their own. */
const nodes = shared(async (clients?: readonly Client[]) => {
  const { url, schema } = await place()
  const open = async () => {
    const node = await openNode(url, schema, clients && { clients })
    atEnd(() => node.store.close())
    return node
  }
  return [await open(), await open()] as const
})

async function place() {
  const cluster = await sharedPostgres()
  return { url: cluster.url(), schema: makeTables(cluster) }
}

/** The same request so many times at once, at one node and the other by turns. */
const atOnce = (
  times: number,
  both: Awaited<ReturnType<typeof nodes>>,
  ask: (service: TestIdentity) => Promise<JsonAnswer>,
): Promise<readonly JsonAnswer[]> =>
  Promise.all(Array.from({ length: times }, (_, n) => ask(both[n % 2 === 0 ? 0 : 1].service)))

describe('T3.24 an assertion that is sent many times at once', () => {
  const TIMES = 20

  it('T3.24 counts once over two nodes', needing('postgresql'), async () => {
    const key = await makeClientKey('ES256', { kid: 'one' })
    const both = await nodes([
      client('acme-books', { authentication: ['private_key_jwt'], secretHashes: [], jwks: [key.jwk] }),
    ])
    const params = assertedBy(await assertion(key, { audience: ISSUER }))
    const answers = await atOnce(2 * TIMES, both, (service) =>
      requestToken(service, params, { authorization: '' }),
    )
    expect(answers.filter(({ json }) => json.error === 'invalid_client')).toHaveLength(2 * TIMES - 1)
  })
})

describe('T3.23 two nodes on a Postgres', needing('postgresql'), () => {
  it('T3.23 of 20 requests with one proof at both, one gets a token', async () => {
    const headers = {
      ...FORM,
      authorization: basic('acme-books'),
      dpop: prover().prove({ htm: 'POST', htu: `${ISSUER}/connect/token` }),
    }
    const body = formOf({
      grant_type: 'password',
      username: 'alice',
      password: 'alice-password',
      scope: 'fund.read target:b/ACME',
    })
    const answers = await atOnce(20, await nodes(), (service) => service.send({ headers, body }))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const errors = answers.filter(({ status }) => status !== 200).map(({ json }) => json.error as string)
    expect(new Set(errors)).toEqual(new Set(['invalid_dpop_proof']))
  })
})

describe('T6.2 two nodes that share a Postgres', needing('postgresql'), () => {
  it('T6.2 C6.2.1a of 20 browsers that decide at once at both, one gets a code', async () => {
    const [one, other] = await nodes()
    const { json } = await one.service.send({
      path: '/connect/par',
      headers: { ...FORM, authorization: basic('ledgerline') },
      body: formOf({
        redirect_uri: CALLBACK,
        response_type: 'code',
        scope: 'openid fund.read target:b/ACME',
        state: 'of the client',
        nonce: 'n-1',
        code_challenge: challengeOf(VERIFIER),
        code_challenge_method: 'S256',
        prompt: 'consent',
      }),
    })
    const reference = formOf({ client_id: 'ledgerline', request_uri: json.request_uri as string })
    const waiting = []
    for (let browser = 0; browser < 20; browser += 1) {
      const agent = new UserAgent(browser % 2 === 0 ? one.service : other.service)
      const login = await agent.get(`/connect/authorize?${reference}`)
      waiting.push({ agent, page: await agent.logIn(login) })
    }
    const seen = await Promise.all(
      waiting.map(({ agent, page }) => agent.submit(page, { decision: 'allow' })),
    )
    const codes = seen.flatMap((answer) => answerIn(answer)['code'] ?? [])
    expect(codes).toHaveLength(1)
    expect(seen.filter(({ location }) => location !== undefined)).toHaveLength(1)
    expect(await one.store.list('code')).toHaveLength(1)
  })
})

describe('T6.7 two services on a Postgres', needing('postgresql'), () => {
  const open = shared(async () => {
    const store = await sharedStore({ deadline: 20_000 })
    const at = 'http://127.0.0.1:8080'
    const node = () =>
      administered({
        keeps: 'trail',
        change: (loaded) => {
          const { server } = loaded
          return { ...patientGuessing(loaded), server: { ...server, authUrl: at, baseUrl: at }, store }
        },
      })
    return [await node(), await node()] as const
  })

  it('T6.7 C6.3.7 of 20 uses of a link at both, one sets its password, and all others get the same page', async () => {
    const [one, other] = await open()
    await addUser(one, 'dora')
    const { code } = await makeLink(one, 'dora')
    const opened = await eventually(async () => {
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, n) => openLink((n % 2 === 0 ? one : other).service, code)),
      )
      expect(all.map(({ page }) => page.status)).toEqual(all.map(() => 200))
      return all
    })
    const seen = await Promise.all(opened.map(({ choose }, n) => choose(`${CHOSEN} ${n}`)))
    const failed = [one, other].flatMap(({ service }) =>
      service.log().filter(({ status }) => Number(status) >= 500),
    )
    expect(failed).toEqual([])
    const winner = seen.findIndex(isSet)
    const others = seen.filter((_, n) => n !== winner)
    expect(others.map(({ status }) => status)).toEqual(others.map(() => 404))
    expect(new Set(others.map(withoutId)).size).toBe(1)
    for (const { service } of [one, other])
      await eventually(async () => {
        expect(await isPasswordOf(service, 'dora', `${CHOSEN} ${winner}`)).toBe(true)
      })
    const records = [one, other].flatMap(({ service }) => {
      const all = recordsOf(service, 'user.password_set')
      const failed = new Set(all.map(({ intent }) => intent))
      return all.filter(({ outcome, seq }) => outcome === 'success' && !failed.has(seq))
    })
    expect(records).toHaveLength(1)
  })

  it('T6.7 C6.3.7 of links that both make at once, one is good at most', async () => {
    const [one, other] = await open()
    await addUser(one, 'erin')
    const found = await eventually(async () => {
      const made = await Promise.all([one, other].map((each) => makeLink(each, 'erin')))
      return made.map(({ code }) => code)
    })
    const opened = await Promise.all(
      [one, other].flatMap(({ service }) => found.map((code) => openLink(service, code))),
    )
    const good = opened.filter(({ page }) => page.status === 200).map(({ cookie }) => cookie)
    expect(new Set(good).size).toBeLessThanOrEqual(1)
    const seen = await Promise.all(opened.map(({ choose }) => choose()))
    expect(seen.filter(isSet).length).toBeLessThanOrEqual(1)
  })
})
