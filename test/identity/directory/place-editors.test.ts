import { describe, expect, it } from 'vitest'
import type { RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { Hasher } from '../../../src/identity/directory/hashing/hasher.ts'
import { openEditors, RECORD_KINDS } from '../../../src/identity/directory/editors/editors.ts'
import { DirectoryRefusal, type EditingParts } from '../../../src/identity/directory/editors/editing.ts'
import { onlyLessens } from '../../../src/base/config/lessens.ts'
import { viewOf } from '../../../src/base/config/schema.ts'
import type { NounName } from '../../../src/identity/directory/editors/record-kind.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { acting, actingOnClients, actingOnUsers } from '../../support/acting.ts'
import { catalogue, makeDirectory } from '../../support/directory.ts'
import { movableClock } from '../../support/movable-clock.ts'

async function opened(others: Pick<EditingParts, 'problemsOfValues'> = {}) {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const steps: unknown[] = []
  const parts = {
    ...{ store, clock, catalogue, configured: await makeDirectory() },
    feed: {
      append: (_topic: string, value: object) => {
        steps.push(value)
        return Promise.resolve()
      },
    },
    tokenRevoker: {
      end: (tokens: RevokedTokens, { consents }: { consents?: boolean } = {}) => {
        steps.push({ end: tokens, consents })
        return Promise.resolve({ sessions: 0, families: 1, codes: 2, consents: 0 })
      },
    },
    pause: () => {
      steps.push('pause')
      return Promise.resolve()
    },
    hasher: new Hasher(),
    ...others,
  }
  const taken = () => steps.splice(0)
  const editors = openEditors(parts)
  return {
    ...{ store, taken },
    businesses: acting(editors.business),
    funds: acting(editors.fund),
    roles: acting(editors.role),
    clients: actingOnClients(editors.client),
    users: actingOnUsers(editors.user),
  }
}

/** Why it was refused: the problems of the record, else the message. */
const refusal = async (work: Promise<unknown>): Promise<string> => {
  const thrown: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(thrown instanceof DirectoryRefusal)) throw new Error('it was not refused')
  return (
    thrown.problems?.list.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ') ??
    thrown.message
  )
}

const INITECH = { code: 'INITECH', name: 'Initech' }

describe('C8.7 a business whose value says where calls go', () => {
  const SECRET = 'https://evil.example'
  const problemsOfValues = ({ url = '' }: Readonly<Record<string, string>>) =>
    url.includes('evil') ? ([['url', 'is of an origin that `origins` does not list']] as const) : []
  const REFUSED = 'values.url is of an origin that `origins` does not list'
  const business = (url: string | { readonly secret: string }) => ({
    ...{ code: 'STARK', name: 'Stark', values: { url } },
  })

  it('C8.7 is not added, nor changed so, where it would go elsewhere; no message tells the value', async () => {
    const { businesses } = await opened({ problemsOfValues })
    expect(await refusal(businesses.add(business(SECRET)))).toBe(REFUSED)
    await businesses.add(business('https://stark.erp.internal'))
    expect(await refusal(businesses.plan('STARK', () => business(SECRET)))).toBe(REFUSED)
    expect(await refusal(businesses.plan('STARK', () => business({ secret: SECRET })))).toBe(REFUSED)
    await (await businesses.plan('STARK', () => business('https://stark2.erp.internal'))).commit()
  })

  it('C8.7 that stands already hinders no other change, but for the one that enables the business', async () => {
    let isListed = true
    const { businesses } = await opened({
      problemsOfValues: (texts) => (isListed ? [] : problemsOfValues(texts)),
    })
    await businesses.add(business(SECRET))
    isListed = false
    await (await businesses.plan('STARK', () => ({ name: 'Stark & Co' }))).commit()
    await businesses.disable('STARK')
    expect(await refusal(businesses.enable('STARK'))).toBe(REFUSED)
  })
})

describe('C11.5.1 businesses of the store', () => {
  it('are added, shown and changed by their code', async () => {
    const { businesses, taken } = await opened()
    const { record, warnings } = await businesses.add({ ...INITECH, address: { country: 'AU' } })
    expect({ record, warnings }).toEqual({
      record: { ...INITECH, funds: 'listed', disabled: false, address: { country: 'AU' } },
      warnings: [],
    })
    expect(taken()).toEqual([{ business: 'INITECH' }])
    expect(await businesses.show('INITECH')).toEqual({ key: 'INITECH', source: 'store', record, version: 1 })
    const planned = await businesses.plan('INITECH', () => ({ name: 'Initech 2', address: undefined }))
    expect(planned).toMatchObject({ keys: ['name', 'address'], version: 1 })
    expect(await planned.commit()).toEqual([])
    expect(taken()).toEqual([{ business: 'INITECH' }, 'pause'])
    expect((await businesses.show('INITECH')).record).toEqual({
      ...{ code: 'INITECH', name: 'Initech 2', funds: 'listed', disabled: false },
    })
  })

  it('end what was issued for them when they are disabled, and consents too when they are removed', async () => {
    const { businesses, funds, store, taken } = await opened()
    await businesses.add(INITECH)
    await funds.add({ business: 'INITECH', code: 'LEGACY' })
    taken()
    const [loss] = await businesses.disable('INITECH')
    expect(loss).toEqual({
      loss: { tokens: { business: 'INITECH' }, consents: false },
      ended: { sessions: 0, families: 2, codes: 4, consents: 0 },
    })
    const end = (consents: boolean) => ({ end: { business: 'INITECH' }, consents })
    expect(taken()).toEqual([end(false), { business: 'INITECH' }, end(false), 'pause'])
    await businesses.disable('INITECH')
    expect(taken()).toContainEqual(end(false))
    await businesses.enable('INITECH')
    expect(taken()).toEqual([{ business: 'INITECH' }, 'pause'])
    await businesses.remove('INITECH')
    expect(taken()).toEqual([end(true), { business: 'INITECH' }, end(true), 'pause'])
    expect([await store.list('directory_business'), await store.list('directory_fund')]).toEqual([[], []])
  })

  it('are refused if they have problems, or if the code is taken or unknown', async () => {
    const { businesses } = await opened()
    await businesses.add(INITECH)
    expect(await refusal(businesses.add({ code: 'a/b', name: 'x', funds: 'none' }))).toBe(
      'code expected a code that can stand in a path, such as "ACME", got "a/b"; funds expected one of "listed", "any", got "none"',
    )
    expect(await refusal(businesses.add(INITECH))).toBe('There is a business "INITECH" already.')
    expect(await refusal(businesses.add({ code: 'ACME', name: 'x' }))).toBe(
      'Business "ACME" is in the configuration, which no command changes: edit it there.',
    )
    expect(await refusal(businesses.disable('ACME'))).toContain('which no command changes')
    expect(await refusal(businesses.remove('ACME'))).toContain('which no command changes')
    expect(await refusal(businesses.plan('INITECH', () => ({ code: 'OTHER' })))).toBe(
      'The code of a business cannot change: add another business, and remove this one.',
    )
    expect(await refusal(businesses.show('INITEHC'))).toBe(
      'There is no business "INITEHC" — did you mean "INITECH"?',
    )
  })

  it('are listed with those of the configuration, in pages, by the prefix of their code', async () => {
    const { businesses } = await opened()
    for (const code of ['ACNE', 'AA', 'B1', 'B2', 'B3', 'Z']) await businesses.add({ code, name: code })
    const listed: string[] = []
    for (let after: string | undefined, pages = 0; pages < 9; pages++) {
      const { items, next } = await businesses.list({ after, limit: 3 })
      expect(items.length).toBeLessThanOrEqual(3)
      listed.push(...items.map(({ key, source }) => `${key} ${source}`))
      if (next === undefined) break
      after = next
    }
    expect(listed).toEqual([
      ...['AA store', 'ACME configuration', 'ACNE store', 'B1 store', 'B2 store', 'B3 store'],
      ...['GLOBEX configuration', 'Z store'],
    ])
    const keysOf = async (prefix: string, limit = 9) =>
      (await businesses.list({ prefix, after: undefined, limit })).items.map(({ key }) => key)
    expect(await keysOf('AC')).toEqual(['ACME', 'ACNE'])
    expect(await keysOf('B', 2)).toEqual(['B1', 'B2'])
    expect(await keysOf('ac')).toEqual([])
    const { items, next } = await businesses.list({ prefix: 'B', after: undefined, limit: 3 })
    expect([items.length, next]).toEqual([3, undefined])
  })

  it('that the configuration hides are removed without an end of the tokens', async () => {
    const { businesses, store, taken } = await opened()
    await store.create('directory_business', 'ACME', { value: { record: { code: 'ACME', name: 'Hidden' } } })
    const page = await businesses.list({ after: undefined, limit: 9 })
    expect(page.items.map(({ key, source }) => [key, source])).toEqual([
      ['ACME', 'configuration'],
      ['GLOBEX', 'configuration'],
    ])
    await businesses.remove('ACME')
    expect(taken()).toEqual([{ business: 'ACME' }, 'pause'])
    expect(await store.find('directory_business', 'ACME')).toBeUndefined()
  })
})

describe('C11.5.1 funds of the store', () => {
  it('belong to a business of the store that lists its funds', async () => {
    const { businesses, funds } = await opened()
    await businesses.add(INITECH)
    await businesses.add({ code: 'OPEN', name: 'Open', funds: 'any' })
    const fund = { business: 'INITECH', code: 'LEGACY', name: 'The old one' }
    expect((await funds.add(fund)).record).toEqual({ ...fund, disabled: false })
    expect(await refusal(funds.add({ business: 'ACME', code: 'NEW' }))).toBe(
      'Business "ACME" is in the configuration, and its funds with it: edit them there.',
    )
    expect(await refusal(funds.add({ business: 'NONE', code: 'NEW' }))).toBe('There is no business "NONE".')
    expect(await refusal(funds.add({ business: 'OPEN', code: 'NEW' }))).toContain('`funds: any`')
    expect(await refusal(funds.remove('ACME/SUPER1'))).toContain('in the configuration')
    await funds.disable('INITECH/LEGACY')
    expect(await funds.show('INITECH/LEGACY')).toMatchObject({ record: { disabled: true }, version: 2 })
    expect(await funds.show('ACME/SUPER1')).toMatchObject({ source: 'configuration', version: undefined })
  })

  it('are listed by their business', async () => {
    const { businesses, funds } = await opened()
    for (const code of ['B', 'BB']) await businesses.add({ code, name: code })
    for (const key of ['B F1', 'B F2', 'B G', 'BB F3']) {
      const [business, code] = key.split(' ')
      await funds.add({ business, code })
    }
    const keysOf = async (prefix: string, after?: string) =>
      (await funds.editor.list({ prefix, after, limit: 9 })).items.map(({ key }) => key)
    expect(await keysOf('B/')).toEqual(['B/F1', 'B/F2', 'B/G'])
    expect(await keysOf('B/F')).toEqual(['B/F1', 'B/F2'])
    expect(await keysOf('B/', 'B/F1')).toEqual(['B/F2', 'B/G'])
    expect(await keysOf('ACME/')).toEqual(['ACME/SUPER1'])
  })
})

describe('C11.5.1 roles of the store', () => {
  it('have scope values of the catalogue', async () => {
    const { roles } = await opened()
    const clerk = { name: 'Clerk', scopes: ['fund.read'] }
    expect((await roles.add(clerk)).record).toEqual({ ...clerk, disabled: false })
    expect(await refusal(roles.add({ name: 'Other', scopes: ['fund.raed'] }))).toBe(
      'scopes.0 names no scope of the catalogue: "fund.raed"',
    )
    expect(await refusal(roles.add({ name: 'Reader', scopes: [] }))).toContain('in the configuration')
    expect((await roles.list({ after: undefined, limit: 9 })).items.map(({ key }) => key)).toEqual([
      ...['Clerk', 'Reader'],
    ])
  })

  it('that do not fit the configuration any more are disabled and removed, and not enabled', async () => {
    const { roles, store } = await opened()
    const value = { record: { name: 'Clerk', scopes: ['gone.read'], disabled: false } }
    await store.create('directory_role', 'Clerk', { value })
    await roles.disable('Clerk')
    expect((await roles.show('Clerk')).record).toMatchObject({ scopes: ['gone.read'], disabled: true })
    expect(await refusal(roles.enable('Clerk'))).toContain('gone.read')
    await roles.remove('Clerk')
    expect(await store.find('directory_role', 'Clerk')).toBeUndefined()
  })

  it.each([
    ['directory_role', { name: 'Reader', scopes: [], disabled: false }, 'roles', 'Reader'],
    ['directory_fund', { business: 'ACME', code: 'SUPER1', disabled: false }, 'funds', 'ACME/SUPER1'],
  ] as const)('that the configuration hides are removed: %s', async (kind, record, editor, key) => {
    const here = await opened()
    await here.store.create(kind, key, { value: { record } })
    expect(await refusal(here[editor].disable(key))).toContain('in the configuration')
    await here[editor].remove(key)
    expect(await here.store.find(kind, key)).toBeUndefined()
    expect((await here[editor].show(key)).source).toBe('configuration')
  })
})

describe('C11.5.1 clients and users of the store', () => {
  it('may refer to businesses and roles of the store, and to no others', async () => {
    const { businesses, roles, clients, users } = await opened()
    const client = {
      ...{ id: 'books', kind: 'customer', name: 'Books', grants: ['refresh_token'] },
      ...{ businesses: ['ACME', 'INITECH'], scopes: ['fund.read'] },
    }
    const ann = {
      username: 'ann',
      access: { INITECH: 'Clerk', ACME: 'Reader' },
      password: 'correct horse battery',
    }
    expect(await refusal(clients.add(client))).toContain('names no business of the directory: "INITECH"')
    await businesses.add(INITECH)
    await clients.add(client)
    expect(await refusal(users.add(ann))).toContain('names no role of the directory: "Clerk"')
    await roles.add({ name: 'Clerk', scopes: [] })
    expect((await users.add(ann)).record.access).toEqual(ann.access)
  })
})

describe('C12.1.7 a change of a place', () => {
  const lessens = (noun: NounName, before: object, after: object) =>
    onlyLessens(viewOf(RECORD_KINDS[noun].schema), before, after)

  it('takes away if it closes or narrows, and gives otherwise', () => {
    const business = { code: 'A', name: 'A', funds: 'any', disabled: false }
    expect(lessens('business', business, { ...business, funds: 'listed', disabled: true })).toBe(true)
    expect(lessens('business', { ...business, funds: 'listed' }, business)).toBe(false)
    expect(lessens('business', business, { ...business, name: 'B' })).toBe(false)
    expect(lessens('role', { scopes: ['a', 'b'] }, { scopes: ['a'] })).toBe(true)
    expect(lessens('role', { scopes: ['a'] }, { scopes: ['a', 'b'] })).toBe(false)
    expect(lessens('fund', { disabled: true }, { disabled: false })).toBe(false)
  })
})
