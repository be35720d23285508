import { describe, expect, it } from 'vitest'
import { flow } from '../../../src/identity/steps/endpoint.ts'
import { authenticateClient, proveKey } from '../../../src/identity/steps/authenticate-client.ts'
import { chooseGrant } from '../../../src/identity/grants/grants.ts'
import { readForm } from '../../../src/identity/steps/read-form.ts'
import { basic, client, formOf, openTestIdentity, type Sent } from '../../support/identity-under-test.ts'

/** A request that fails at the named stages and nowhere else, and the error of each stage: C6.1.0 in its order. */
interface Failing {
  method?: string
  contentType?: string
  extra?: string
  authorization?: string
  params?: Record<string, string | undefined>
}

const STAGES: readonly (readonly [string, string, Failing])[] = [
  ['method', '405 invalid_request', { method: 'PUT' }],
  ['Content-Type', '400 invalid_request content-type', { contentType: 'application/json' }],
  ['form', '400 invalid_request parsed', { extra: '&a=%zz' }],
  ['repeats', '400 invalid_request twice', { extra: '&scope=openid' }],
  ['client', '400 invalid_client', { authorization: basic('acme-books', 'wrong') }],
  ['grant_type', '400 unsupported_grant_type', { params: { grant_type: 'magic' } }],
  ['required fields', '400 invalid_request missing', { params: { username: undefined } }],
  ['scope', '400 invalid_scope', { params: { scope: 'no.such.scope' } }],
  ['password', '400 invalid_grant', { params: { password: 'wrong' } }],
  ['scope against the user', '400 invalid_scope', { params: { scope: 'openid target:b/GLOBEX' } }],
]

const request = (faults: readonly Failing[]): Sent => {
  const all: Failing = Object.assign({}, ...faults)
  const params = Object.assign({}, ...faults.map((fault) => fault.params).reverse())
  const right = { grant_type: 'password', username: 'alice', password: 'alice-password', scope: 'openid' }
  return {
    method: all.method ?? 'POST',
    headers: {
      'content-type': all.contentType ?? 'application/x-www-form-urlencoded',
      authorization: all.authorization ?? basic('acme-books'),
    },
    body: formOf({ ...right, ...params }) + (all.extra ?? ''),
  }
}

const HINTS = { 'content-type': /Content-Type/, parsed: /parsed/, twice: /twice/, missing: /missing/ }

async function expectAnswer(sent: Sent, expected: string): Promise<void> {
  const [status, error, hint] = expected.split(' ')
  const answer = await openTestIdentity().send(sent)
  expect(`${String(answer.status)} ${String(answer.json.error)}`).toBe(`${String(status)} ${String(error)}`)
  if (hint !== undefined) expect(answer.json.error_description).toMatch(HINTS[hint as keyof typeof HINTS])
}

describe('C6.1.0 the order of the checks', () => {
  it.each(STAGES)('C6.1.0 %s alone answers %s', async (_, expected, fault) => {
    await expectAnswer(request([fault]), expected)
  })

  const pairs = STAGES.slice(1).map((later, at) => [STAGES[at]!, later] as const)
  it.each(pairs.map(([a, b]) => [a[0], b[0], a, b] as const))(
    'C6.1.0 %s before %s',
    async (_a, _b, earlier, later) => {
      // Of two faults in one place (form and repeats share the body's end) both are sent.
      const extra = [earlier, later].map(([, , fault]) => fault.extra ?? '').join('')
      await expectAnswer(request([earlier[2], later[2], { extra }]), earlier[1])
    },
  )

  it('C6.1.0 whether a client may use a grant is judged before its fields', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { grants: ['refresh_token'] })] })
    const { json } = await service.send(request([{ params: { username: undefined } }]))
    expect(json.error).toBe('unauthorized_client')
  })

  it('C6.1.4 a missing grant_type is invalid_request', async () => {
    const { json } = await openTestIdentity().send(request([{ params: { grant_type: undefined } }]))
    expect(json.error).toBe('invalid_request')
  })

  it.each(['username', 'password'])(
    'C6.1.4 a missing %s is invalid_request, which names it',
    async (name) => {
      const { json } = await openTestIdentity().send(request([{ params: { [name]: undefined } }]))
      expect(json.error).toBe('invalid_request')
      expect(json.error_description).toContain(name)
    },
  )

  it('C6.1.0 using a client before it is authenticated does not compile', () => {
    expect(flow(readForm, authenticateClient, proveKey('token'), chooseGrant)).toBeTypeOf('function')
    // @ts-expect-error chooseGrant needs a client, which readForm does not give
    expect(flow(readForm, chooseGrant)).toBeTypeOf('function')
  })
})
