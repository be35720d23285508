import { createHmac } from 'node:crypto'
import { describe, expect, it, vi } from 'vitest'
import { FAMILY, type FamilyRecord, OLDER_TOKEN, olderKey } from '../../../src/identity/stored/families.ts'
import { endAllFamilies } from '../../../src/identity/stored/token-revoker.ts'
import { createDeriver } from '../../../src/identity/keys/signing/key-place.ts'
import { openTestIdentity, requestToken, type TestIdentity } from '../../support/identity-under-test.ts'

// The form of refresh tokens, and what a family's record says of them (C6.1.7).

const SCOPE = 'openid offline_access fund.read target:b/ACME'

const begin = async (service: TestIdentity): Promise<string> =>
  (await requestToken(service, { scope: SCOPE })).json.refresh_token

const refresh = (service: TestIdentity, token: string) =>
  requestToken(service, {
    ...{ grant_type: 'refresh_token', refresh_token: token },
    ...{ scope: undefined, username: undefined, password: undefined },
  })

/** The next token, of a use that must succeed. */
async function next(service: TestIdentity, token: string): Promise<string> {
  const { json, status } = await refresh(service, token)
  expect(status).toBe(200)
  return json.refresh_token
}

const errorOf = async (service: TestIdentity, token: string): Promise<string> =>
  (await refresh(service, token)).json.error

const familyOf = async ({ store }: TestIdentity, token: string) => {
  const entry = await store.find(FAMILY, token.split('.')[2] ?? '')
  return entry && { ...entry, record: entry.value as FamilyRecord }
}

const changed = (token: string, part: number, to: string): string => token.split('.').with(part, to).join('.')

describe('C6.1.7 the text of a refresh token', () => {
  it('C6.1.7 names its secret, its family and its number, which each use counts up', async () => {
    const service = openTestIdentity()
    const first = await begin(service)
    const second = await next(service, first)
    expect(first).toMatch(/^v2\.[\w-]{8}\.[\w-]{22}\.1\.[\w-]{43}$/)
    expect(second.split('.').slice(0, 4)).toEqual(first.split('.').slice(0, 4).with(3, '2'))
    const found = await familyOf(service, second)
    expect(found?.record).toMatchObject({ generation: 2, rotatedAt: service.clock.now() })
  })

  it('C6.1.7 cannot be made by whoever has the store alone, or the secret alone', async () => {
    const service = openTestIdentity()
    const token = await begin(service)
    const { record: { salt = '' } = {} } = (await familyOf(service, token)) ?? {}
    const [form, , family] = token.split('.')
    const text = [form, family, 2, salt].join('.')
    const byStore = createHmac('sha256', salt).update(text).digest('base64url')
    const bySecret = service.deps.deriver.derive([form, family, 2, ''].join('.'))
    for (const mac of [byStore, bySecret])
      expect(await errorOf(service, changed(changed(token, 3, '2'), 4, mac))).toBe('invalid_grant')
    expect(await next(service, token)).toBe(
      changed(changed(token, 3, '2'), 4, service.deps.deriver.derive(text)),
    )
  })

  it.each<[string, (token: string) => string]>([
    ['another mac', (token) => changed(token, 4, 'A'.repeat(43))],
    ['another number', (token) => changed(token, 3, '2')],
    ['a number that begins with zero', (token) => changed(token, 3, '01')],
    ['a number beyond counting', (token) => changed(token, 3, '9'.repeat(400))],
    ['another family', (token) => changed(token, 2, 'A'.repeat(22))],
    ['another secret', (token) => changed(token, 1, 'A'.repeat(8))],
    ['another form', (token) => changed(token, 0, 'v3')],
    ['one part more', (token) => `${token}.x`],
    ['one part less', (token) => token.slice(0, token.lastIndexOf('.'))],
    ['another spelling of its last character', (token) => respelled(token)],
  ])('C6.1.7 with %s it is unknown, and nothing of its family is touched', async (_, change) => {
    const service = openTestIdentity()
    const token = await begin(service)
    const before = await service.store.list(FAMILY)
    expect(await errorOf(service, change(token))).toBe('invalid_grant')
    expect(await service.store.list(FAMILY)).toEqual(before)
    expect(await next(service, token)).toMatch(/^v2\./)
  })

  it('T3.10 C6.1.7 no token of a replaced secret is good, also of a family that was begun meanwhile', async () => {
    const service = openTestIdentity()
    const token = await begin(service)
    const deriver = createDeriver('another secret')
    const after = openTestIdentity({ store: service.store, deps: { deriver } })
    expect(await errorOf(after, token)).toBe('invalid_grant')
    expect(await next(after, await begin(after))).toContain(`.${deriver.secretId}.`)
  })
})

/** The same 43 characters, decoded: its last one has two bits that a lenient reader drops. */
function respelled(token: string): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = digits.indexOf(token.at(-1) ?? '')
  return token.slice(0, -1) + (digits[last % 4 === 3 ? last - 1 : last + 1] ?? '')
}

describe('C6.1.7 a store that has lost its last writes', () => {
  it('C6.1.7 lets the client go on, and ends the family as an older token comes', async () => {
    const service = openTestIdentity()
    const first = await begin(service)
    const backup = await familyOf(service, first)
    const third = await next(service, await next(service, first))
    const now = await familyOf(service, first)
    await service.store.replace(FAMILY, now?.key ?? '', now?.version ?? 0, backup?.value ?? {})
    const fourth = await next(service, third)
    expect((await familyOf(service, fourth))?.record.generation).toBe(4)
    expect(await next(service, third)).toBe(fourth)
    expect(await errorOf(service, first)).toBe('invalid_grant')
    expect(await errorOf(service, fourth)).toBe('invalid_grant')
  })

  it('C6.1.7 asks the rules first: a family that was ended stays ended', async () => {
    const service = openTestIdentity()
    const second = await next(service, await begin(service))
    const found = await familyOf(service, second)
    await service.deps.tokenRevoker.end({ family: found?.key ?? '' })
    await service.store.create(FAMILY, found?.key ?? '', { value: { ...found?.value, generation: 1 } })
    expect(await errorOf(service, second)).toBe('invalid_grant')
  })
})

/** A family as older versions stored it, with tokens of theirs. */
async function older(service: TestIdentity, tokens: readonly string[]): Promise<void> {
  const { family, record } = service.identity.dependencies.families.draw({
    ...{ client: 'acme-books', subject: 'sub-alice', scope: SCOPE, authTime: 1, grant: 'password' },
  })
  const { value, ...rest } = record
  const { client, subject, scope, authTime, grant } = value as FamilyRecord
  const before = { client, subject, scope, authTime, grant }
  const { store } = service
  const indexes = { ...rest.indexes, family }
  await store.create(FAMILY, family, { ...rest, value: before, indexes })
  for (const token of tokens)
    await store.create(OLDER_TOKEN, olderKey(token), { ...rest, value: { family }, indexes })
}

const OLD = 'o'.repeat(43)

describe('C6.1.7 a refresh token that an older version gave', () => {
  it('C6.1.7 works once, then within the grace, and its successor is the first of the new form', async () => {
    const service = openTestIdentity()
    await older(service, [OLD])
    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service, OLD)))
    const successors = new Set(answers.map(({ json }) => json.refresh_token))
    expect([...successors]).toEqual([expect.stringMatching(/^v2\..*\.1\.[\w-]{43}$/)])
    service.clock.at += 29_999
    const [first = ''] = successors
    expect(await next(service, OLD)).toBe(first)
    expect(await next(service, await next(service, first))).toContain('.3.')
  })

  it.each<[string, (service: TestIdentity, successor: string) => unknown]>([
    ['after the grace', (service) => (service.clock.at += 30_000)],
    ['after its successor', next],
  ])('C6.1.7 ends its family if it comes again %s', async (_, meanwhile) => {
    const service = openTestIdentity()
    await older(service, [OLD])
    const first = await next(service, OLD)
    await meanwhile(service, first)
    expect(await errorOf(service, OLD)).toBe('invalid_grant')
    expect(await errorOf(service, first)).toBe('invalid_grant')
    expect(await service.store.list(FAMILY)).toEqual([])
  })

  it('C6.1.7 that the older version had used gives the same successor within the grace', async () => {
    const service = openTestIdentity()
    const second = service.deps.deriver.derive(OLD)
    await older(service, [OLD, second])
    await service.store.consume(OLDER_TOKEN, olderKey(OLD))
    expect(await next(service, OLD)).toBe(second)
    const third = await next(service, second)
    expect(await errorOf(service, OLD)).toBe('invalid_grant')
    expect(await errorOf(service, third)).toBe('invalid_grant')
  })

  it.each([
    ['after the grace', 30_000, false],
    ['after its successor', 0, true],
  ])('C6.1.7 that the older version had used ends its family %s', async (_, wait, successorUsed) => {
    const service = openTestIdentity()
    const second = service.deps.deriver.derive(OLD)
    await older(service, [OLD, second])
    await service.store.consume(OLDER_TOKEN, olderKey(OLD))
    if (successorUsed) await service.store.consume(OLDER_TOKEN, olderKey(second))
    service.clock.at += wait
    expect(await errorOf(service, OLD)).toBe('invalid_grant')
    expect(await service.store.list(FAMILY)).toEqual([])
  })

  it('C6.1.7 is unknown once its family has ended', async () => {
    const service = openTestIdentity()
    await older(service, [OLD])
    await endAllFamilies(service.store)
    expect(await errorOf(service, OLD)).toBe('invalid_grant')
    expect(await service.store.list(OLDER_TOKEN)).toEqual([])
  })
})

/** The verbs that a refresh asks the store for. */
async function askedBy(service: TestIdentity, work: () => Promise<unknown>): Promise<readonly string[]> {
  const verbs = ['find', 'create', 'consume', 'redeem', 'replace', 'remove', 'removeBy'] as const
  const spies = verbs.map((verb) => vi.spyOn(service.store, verb))
  await work()
  const asked = verbs.filter((_, at) => spies[at]?.mock.calls.length === 1)
  expect(spies.reduce((sum, { mock }) => sum + mock.calls.length, 0)).toBe(asked.length)
  for (const spy of spies) spy.mockRestore()
  return asked
}

describe('C6.1.7 a family that this process has rotated last', () => {
  it('is not read again for its next token', async () => {
    const service = openTestIdentity()
    let token = await begin(service)
    const turn = async (): Promise<void> => {
      token = await next(service, token)
    }
    expect(await askedBy(service, turn)).toEqual(['find', 'replace'])
    expect(await askedBy(service, turn)).toEqual(['replace'])
  })

  it('is remembered with its end', async () => {
    const service = openTestIdentity()
    const token = await next(service, await begin(service))
    service.clock.at += 30 * 86_400_000
    expect(await errorOf(service, token)).toBe('invalid_grant')
  })

  it.each<[string, number, string]>([
    ['within the grace: the same successor', 29_999, 'good'],
    ['after the grace: a replay', 30_000, 'invalid_grant'],
  ])(
    'C6.1.7 and another process since: an old token is told from the one in use, %s',
    async (_, wait, result) => {
      const one = openTestIdentity()
      const elsewhere = openTestIdentity({ store: one.store })
      const second = await next(one, await begin(one))
      const third = await next(elsewhere, second)
      one.clock.at += wait
      const { json } = await refresh(one, second)
      expect(json.error ?? 'good').toBe(result)
      if (result === 'good') expect(json.refresh_token).toBe(third)
      else expect(await familyOf(one, second)).toBeUndefined()
    },
  )

  it('C6.1.7 and another process has ended since is ended here', async () => {
    const service = openTestIdentity()
    const token = await next(service, await begin(service))
    await service.store.remove(FAMILY, token.split('.')[2] ?? '')
    expect(await errorOf(service, token)).toBe('invalid_grant')
  })

  it('is read for introspection and revocation', async () => {
    const service = openTestIdentity()
    const token = await next(service, await begin(service))
    await next(openTestIdentity({ store: service.store }), token)
    service.clock.at += 30_000
    expect((await service.identity.dependencies.families.find(token))?.state).toBe('replayed')
  })
})
