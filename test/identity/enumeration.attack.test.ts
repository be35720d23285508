import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { patientGuessing } from '../support/guessing.ts'
import { postForm, type OAuthAnswer } from '../support/oauth.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'

// T3.9: learning which users, clients and tokens exist, by text, status or time.

let service: StartedPostern
beforeAll(async () => {
  // The delays after failures have tests of their own; here they would be measured instead of the answers.
  service = await startPostern({
    keeps: 'nothing',
    change: (configuration) => {
      const patient = patientGuessing(configuration)
      const { alice } = patient.directory.users
      const locked = { ...alice!, subject: 'locked-subject', locked: true }
      const disabled = { ...alice!, subject: 'disabled-subject', disabled: true }
      const users = { ...patient.directory.users, locked, disabled }
      return { ...patient, directory: { ...patient.directory, users } }
    },
  })
})
afterAll(() => service.close())

type Attempt = () => Promise<OAuthAnswer>

const password =
  (username: string, given: string): Attempt =>
  () =>
    postForm(service, '/connect/token', {
      params: { grant_type: 'password', username, password: given, scope: 'fund.read target:b/ACME' },
    })

const asClient =
  (client: string, secret: string, path = '/connect/token'): Attempt =>
  () =>
    postForm(service, path, { client, secret, params: { grant_type: 'password', token: 'x' } })

const plainly = ({ status, json, headers }: OAuthAnswer) => ({
  status,
  json,
  headers: [...headers].filter(([name]) => !['x-request-id', 'date'].includes(name)),
})

const USERS: readonly (readonly [string, Attempt])[] = [
  ['a wrong password', password('alice', 'wrong')],
  ['an unknown user', password('nobody', 'wrong')],
  ['a user of another customer', password('carol', 'carol-password')],
  ['a locked user with the right password', password('locked', 'alice-password')],
  ['a disabled user with the right password', password('disabled', 'alice-password')],
]

const clientsAt = (path: string): readonly (readonly [string, Attempt])[] => [
  ['a wrong secret', asClient('acme-books', 'wrong', path)],
  ['an unknown client', asClient('nobody', 'wrong', path)],
  ['a public client with a secret', asClient('pocketbooks', 'wrong', path)],
  ['another client’s secret', asClient('acme-books', 'globex-ledger-secret', path)],
]

/** How many slow hashes an attempt costs, which is nearly all of its time; a quick one is that of a drawn secret. */
async function hashesOf(attempt: Attempt): Promise<number> {
  const verify = vi.spyOn(service.world.hasher, 'verify')
  await attempt()
  const { length } = verify.mock.calls.filter(([, encoded]) => encoded?.startsWith('sha256:') !== true)
  verify.mockRestore()
  return length
}

/** How long they take is compared by `npm run prove answer-times`. */
async function expectSameWork(attempts: readonly (readonly [string, Attempt])[]): Promise<void> {
  const counts: number[] = []
  for (const [, attempt] of attempts) counts.push(await hashesOf(attempt))
  expect(counts).toEqual(attempts.map(() => 1))
}

describe('T3.9 users', () => {
  it.each(USERS)('C6.1.5 %s is the same invalid_grant, byte for byte', async (_, attempt) => {
    const [[, reference]] = USERS as [(typeof USERS)[number]]
    const answer = plainly(await attempt())
    expect(answer).toMatchObject({ status: 400, json: { error: 'invalid_grant' } })
    expect(answer).toEqual(plainly(await reference()))
  })

  it('C6.1.5 all of them cost one slow hash', () => expectSameWork(USERS))
})

describe.each(['/connect/token', '/connect/par', '/connect/revocation', '/connect/introspect'])(
  'T3.9 clients at %s',
  (path) => {
    it.each(clientsAt(path))('C6.1.2 %s is the same invalid_client, byte for byte', async (_, attempt) => {
      const [[, reference]] = clientsAt(path) as [(typeof USERS)[number]]
      const answer = plainly(await attempt())
      expect(answer.json.error).toBe('invalid_client')
      expect(answer).toEqual(plainly(await reference()))
    })

    it('C6.1.2 all of them cost one slow hash', () => expectSameWork(clientsAt(path)))
  },
)

describe('T3.9 tokens and businesses', () => {
  const token = async (scope: string): Promise<OAuthAnswer> =>
    postForm(service, '/connect/token', {
      client: 'globex-ledger',
      params: { grant_type: 'password', username: 'bob', password: 'bob-password', scope },
    })

  it('C5.4 a business that is not theirs is as one that does not exist', async () => {
    const [theirs, none] = [await token('fund.read target:b/ACME'), await token('fund.read target:b/NOWHERE')]
    expect(plainly(theirs)).toMatchObject({ status: 400, json: { error: 'invalid_scope' } })
    expect(plainly(theirs)).toEqual(plainly(none))
  })

  it('C6.3.3 another client’s token is introspected as one that does not exist', async () => {
    const { json } = await token('openid offline_access fund.read target:b/GLOBEX')
    const introspect = async (value: string) =>
      plainly(await postForm(service, '/connect/introspect', { params: { token: value } }))
    const unknown = await introspect('x'.repeat(43))
    expect(unknown).toMatchObject({ status: 200, json: { active: false } })
    for (const value of [json.access_token, json.refresh_token])
      expect(await introspect(value)).toEqual(unknown)
  })

  it('C6.1.7 another client’s refresh token is refused as one that does not exist', async () => {
    const { json } = await token('offline_access fund.read target:b/GLOBEX')
    const refresh = async (value: string) =>
      plainly(
        await postForm(service, '/connect/token', {
          params: { grant_type: 'refresh_token', refresh_token: value },
        }),
      )
    expect(await refresh(json.refresh_token)).toEqual(await refresh('x'.repeat(43)))
  })
})
