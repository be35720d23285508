import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { send, type Sent } from '../support/requests.ts'
import { startPostern, type StartedPostern } from '../support/start-postern.ts'
import { basic } from '../support/tokens.ts'
import { patientGuessing } from '../support/guessing.ts'

/** What a token request looks like. Whatever is patched is broken. */
interface Case {
  readonly method: string
  readonly contentType: string
  readonly authorization: string | undefined
  readonly fields: Readonly<Record<string, string | undefined>>
  /** Written into the form as it is, after the fields. */
  readonly tail: string
}

interface Breakage {
  readonly stage: string
  /** `error`, and a word of its description that tells it from the others. */
  readonly error: string
  readonly says: RegExp
  readonly patch: Partial<Case>
}

const fields = (given: Case['fields']): Partial<Case> => ({ fields: given })

/** C6.1.0, in its order. */
const STAGES: readonly Breakage[] = [
  { stage: 'method', error: 'invalid_request', says: /method/, patch: { method: 'PUT' } },
  {
    stage: 'Content-Type',
    error: 'invalid_request',
    says: /Content-Type/,
    patch: { contentType: 'application/json' },
  },
  { stage: 'form', error: 'invalid_request', says: /parsed/, patch: { tail: '&x=%zz' } },
  { stage: 'repeats', error: 'invalid_request', says: /twice/, patch: { tail: '&x=1&x=2' } },
  { stage: 'client', error: 'invalid_client', says: /Client/, patch: { authorization: basic('nobody') } },
  { stage: 'client', error: 'invalid_client', says: /Client/, patch: { authorization: undefined } },
  {
    stage: 'grant_type present',
    error: 'invalid_request',
    says: /grant_type is missing/,
    patch: fields({ grant_type: undefined }),
  },
  {
    stage: 'grant_type known',
    error: 'unsupported_grant_type',
    says: /./,
    patch: fields({ grant_type: 'implicit' }),
  },
  {
    stage: 'grant_type allowed to this client',
    error: 'unauthorized_client',
    says: /./,
    patch: { authorization: basic('ledgerline') },
  },
  {
    stage: 'required fields',
    error: 'invalid_request',
    says: /username is missing/,
    patch: fields({ username: undefined }),
  },
  {
    stage: 'required fields',
    error: 'invalid_request',
    says: /password is missing/,
    patch: fields({ password: '' }),
  },
  { stage: 'scope syntax', error: 'invalid_scope', says: /character/, patch: fields({ scope: 'open"id' }) },
  {
    stage: 'scope catalogue',
    error: 'invalid_scope',
    says: /not a scope value/,
    patch: fields({ scope: 'no.such.scope' }),
  },
  {
    stage: "client's allowance",
    error: 'invalid_scope',
    says: /target/,
    patch: fields({ scope: 'openid target:b/INITECH' }),
  },
  {
    stage: 'user and password',
    error: 'invalid_grant',
    says: /./,
    patch: fields({ password: 'wrong' }),
  },
  {
    stage: 'scope against the user',
    error: 'invalid_scope',
    says: /target/,
    patch: fields({ username: 'bob', password: 'bob-password', scope: 'openid target:b/ACME' }),
  },
]

const GOOD: Case = {
  method: 'POST',
  contentType: 'application/x-www-form-urlencoded',
  authorization: basic('acme-books'),
  fields: { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' },
  tail: '',
}

function requestOf(patches: readonly Partial<Case>[]): Sent {
  const earlierWins = patches.toReversed()
  const { method, contentType, authorization, tail } = Object.assign({}, GOOD, ...earlierWins) as Case
  const all: Case['fields'] = Object.assign({}, GOOD.fields, ...earlierWins.map((patch) => patch.fields))
  const given = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return {
    method,
    target: '/connect/token',
    headers: { 'Content-Type': contentType, Authorization: authorization },
    body: `${new URLSearchParams(given).toString()}${tail}`,
  }
}

let gateway: StartedPostern
beforeAll(async () => {
  gateway = await startPostern({ keeps: 'nothing', change: patientGuessing })
})
afterAll(() => gateway.close())

async function expectRefusal(sent: Sent, { error, says }: Breakage): Promise<void> {
  const { status, body } = await send(gateway, sent)
  const told = JSON.parse(body) as { error: string; error_description: string }
  expect(told.error, body).toBe(error)
  expect(told.error_description).toMatch(says)
  expect(status).toBe(sent.method === 'PUT' ? 405 : 400)
}

describe('C6.1.0: the order of the token endpoint, first failure wins', () => {
  it('C6.1.0: the request that the pairs break is let through', async () => {
    expect(await send(gateway, requestOf([]))).toMatchObject({ status: 200 })
  })

  it.each(STAGES.map((stage) => [stage.stage, stage.error, stage] as const))(
    'C6.1.0: a request that fails at %s alone is answered %s',
    async (_stage, _error, stage) => {
      await expectRefusal(requestOf([stage.patch]), stage)
    },
  )

  const pairs = STAGES.flatMap((earlier, at) =>
    STAGES.slice(at + 1)
      .filter((later) => later.stage !== earlier.stage)
      .map((later) => [earlier.stage, later.stage, earlier, later] as const),
  )
  it.each(pairs)('C6.1.0: %s comes before %s', async (_earlier, _later, earlier, later) => {
    await expectRefusal(requestOf([earlier.patch, later.patch]), earlier)
  })

  it('C6.1.0: the form comes before repeats, in one body', async () => {
    const [form, repeats] = [STAGES[2]!, STAGES[3]!]
    await expectRefusal(requestOf([{ tail: `${repeats.patch.tail!}${form.patch.tail!}` }]), form)
  })
})
