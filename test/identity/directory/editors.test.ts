import { describe, expect, it, onTestFinished } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import type { RevokedTokens } from '../../../src/base/contracts/records/tokens.ts'
import { DisabledMarks } from '../../../src/identity/directory/records/marks.ts'
import { openEditors } from '../../../src/identity/directory/editors/editors.ts'
import { Hasher, verifySecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { StoredPeople } from '../../../src/identity/directory/records/people.ts'
import { CORE_FORM } from '../../../src/identity/directory/records/schema.ts'
import {
  closeSubject,
  Roles,
  StoredDirectory,
  SUBJECT,
  unknownMembers,
  USER,
} from '../../../src/identity/directory/records/stored-directory.ts'
import { DirectoryRefusal } from '../../../src/identity/directory/editors/editing.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { RevocationRules } from '../../../src/state/stores/feed/revocations.ts'
import { actingOnClients, actingOnUsers } from '../../support/acting.ts'
import { catalogue, HASH, makeDirectory } from '../../support/directory.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { keepNotes } from '../../support/notes.ts'
import { scopeOf } from '../../support/scope.ts'
import { READING } from '../../support/settings.ts'

const DAY = 86_400_000
const PASSWORD = 'correct horse battery'

/** Two processes with one store: one edits; the other serves, and polls the feed when its timer fires. */
async function opened() {
  const clock = movableClock()
  const store = new MemoryStore(clock)
  const configured = await makeDirectory({
    clients: {
      fixed: {
        ...{ kind: 'customer', name: 'Fixed', secrets: [HASH], grants: ['password'] },
        ...{ agreement: '2026-01-15', scopes: [] },
      },
    },
    users: { fixed: { subject: 's-fixed', password: HASH } },
  })
  const join = async () => {
    const timers = manualAfter()
    const recorder = keepNotes()
    const feed = await ChangeFeed.open({ store, clock, recorder, after: timers.after })
    onTestFinished(() => feed.stop())
    const rules = new RevocationRules({ feed, clock, recorder, longestLife: { tokens: DAY, all: DAY } })
    return { feed, rules, timers }
  }
  const editing = await join()
  const serving = await join()
  const ended: RevokedTokens[] = []
  const parts = {
    ...{ store, clock, configured, catalogue, feed: editing.feed },
    hasher: new Hasher(),
    tokenRevoker: {
      end: async (tokens: RevokedTokens) => {
        ended.push(tokens)
        await editing.rules.revoke(tokens)
        return { sessions: 0, families: 0, codes: 0, consents: 0 }
      },
    },
    pause: () => serving.timers.fire(),
  }
  const stored = new StoredDirectory({ store, feed: serving.feed, clock })
  return {
    ...{ clock, store, serving, ended },
    clients: actingOnClients(openEditors(parts).client),
    /** Where no extension adds members. */
    plainClients: actingOnClients(
      openEditors({ ...parts, configured: { ...configured, clientForm: CORE_FORM } }).client,
    ),
    users: actingOnUsers(openEditors(parts).user),
    /** Beside people that live elsewhere. */
    usersBeside: actingOnUsers(openEditors({ ...parts, peopleElsewhere: true }).user),
    people: new StoredPeople(stored, new Roles(configured.roles, stored), clock, READING.clientForm),
  }
}

const acme = {
  ...{ id: 'acme', kind: 'customer', name: 'Acme', grants: ['password', 'refresh_token'] },
  ...{ agreement: '2026-01-15', businesses: ['ACME'], scopes: ['fund.read'] },
}
const ann = { username: 'ann', customers: ['fixed'], access: { ACME: 'Reader' } }

const token = (issuedAt: number, facts: Partial<Principal>): Principal => ({
  ...{ subject: 'somebody', client: 'some-client', clientKey: 'some-client' },
  ...{ issuer: 'https://id.example.com', ...scopeOf('') },
  ...{ target: undefined, tokenId: 'jti', family: undefined },
  ...{ issuedAt: Math.floor(issuedAt / 1000), expiresAt: Math.floor(issuedAt / 1000) + 900 },
  key: { isTrusted: () => true },
  ...facts,
})

const problems = async (work: Promise<unknown>): Promise<readonly string[]> => {
  const refusal: unknown = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(refusal instanceof DirectoryRefusal)) throw new Error('it was not refused')
  return (
    refusal.problems?.list.map(({ path, message }) => `${path.join('.')} ${message}`) ?? [refusal.message]
  )
}

describe('clients of the store', () => {
  it('are found once they are added, with the secret that was shown; only its hash is kept', async () => {
    const { clients, people, store } = await opened()
    const { secret, warnings } = await clients.add(acme)
    expect(warnings).toEqual([])
    const found = await people.findClient('acme')
    expect(found).toMatchObject({ kind: 'customer', businesses: ['ACME'], disabled: false })
    expect(verifySecret(secret!, found!.secretHashes[0]!)).toBe(true)
    expect(JSON.stringify(await store.list('directory_client'))).not.toContain(secret)
  })

  it('C11.5.1 keep members of a missing extension when they are edited', async () => {
    const { plainClients, store } = await opened()
    await plainClients.add(acme)
    const [entry] = await store.list('directory_client')
    const record = { ...(entry!.value['record'] as object), dpop: 'required' }
    await store.replace('directory_client', 'acme', entry!.version, { ...entry!.value, record })
    const renamed = await plainClients.plan('acme', () => ({ name: 'Renamed' }))
    await renamed.commit()
    expect((await store.find('directory_client', 'acme'))?.value['record']).toEqual({
      ...record,
      name: 'Renamed',
    })
    expect(await problems(plainClients.plan('acme', () => ({ dpop: 'off' })))).toEqual([
      'dpop is not a known key here',
    ])
  })

  it('C6.1.2 get no secret in place of keys that a missing extension reads', async () => {
    const { plainClients, store } = await opened()
    const record = { ...acme, secrets: [], jwksUri: 'https://a.example/keys' }
    await store.create('directory_client', 'acme', { value: { record, ends: {} } })
    expect(await unknownMembers(store, CORE_FORM)).toMatchObject({ refused: ['acme'] })
    await expect(plainClients.rotateSecret('acme', 0)).rejects.toThrow('authenticates by its keys')
  })

  it('have no secret if they are public', async () => {
    const { clients, people } = await opened()
    const pocket = { ...acme, kind: 'public', grants: ['authorization_code'], agreement: undefined }
    const { secret } = await clients.add(
      JSON.parse(JSON.stringify({ ...pocket, redirectUris: ['http://127.0.0.1/callback'] })),
    )
    expect(secret).toBeUndefined()
    expect((await people.findClient('acme'))?.secretHashes).toEqual([])
    expect(await problems(clients.rotateSecret('acme', DAY))).toEqual(['A public client has no secret.'])
  })

  it('are refused with every problem that the configuration would tell', async () => {
    const { clients, people } = await opened()
    expect(await problems(clients.add({ ...acme, businesses: ['ACNE'], scopes: ['fund.raed'] }))).toEqual([
      'businesses.0 names no business of the directory: "ACNE"',
      'scopes.0 names no scope of the catalogue: "fund.raed"',
    ])
    expect(await problems(clients.add({ ...acme, id: 'a:b' }))).toHaveLength(1)
    expect(await people.findClient('acme')).toBeUndefined()
  })

  it('are refused under an id that is taken, here or in the configuration', async () => {
    const { clients } = await opened()
    const both = await Promise.allSettled([clients.add(acme), clients.add(acme)])
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await problems(clients.add({ ...acme, id: 'fixed' }))).toEqual([
      'Client "fixed" is in the configuration, which no command changes: edit it there.',
    ])
  })

  it('rotateSecret leaves those of the configuration alone', async () => {
    const { clients } = await opened()
    expect(await problems(clients.rotateSecret('fixed', DAY))).toEqual([
      expect.stringContaining('edit it there'),
    ])
  })

  it.each(['disable', 'enable', 'rotateSecret'] as const)('%s knows who is there', async (verb) => {
    const { clients } = await opened()
    expect(await problems(clients[verb]('nobody', DAY))).toEqual(['There is no client "nobody".'])
  })

  it('C11.5.1 disable marks one of the configuration, ends what it holds, and leaves its record alone', async () => {
    const { clients, store, ended } = await opened()
    await clients.disable('fixed')
    // Before and after the mark, and again where it is there already.
    expect(ended).toEqual([{ client: 'fixed' }, { client: 'fixed' }])
    await clients.disable('fixed')
    expect(ended).toHaveLength(4)
    expect(await store.list('disabled_client')).toMatchObject([{ key: 'fixed', version: 2 }])
    const shown = await clients.show('fixed')
    expect(shown).toMatchObject({ source: 'configuration', disabledByCommand: true })
    await clients.enable('fixed')
    expect([await store.list('disabled_client'), ended.length]).toEqual([[], 4])
  })

  it('are disabled in every process when disable resolves, and their tokens revoked', async () => {
    const { clients, people, serving, clock } = await opened()
    await clients.add(acme)
    await people.findClient('acme')
    const before = token(clock.now(), { client: 'acme' })
    await clients.disable('acme')
    expect((await people.findClient('acme'))?.disabled).toBe(true)
    expect(serving.rules.isRevoked(before)).toBe(true)
    expect(serving.rules.isRevoked(token(clock.now(), { client: 'other' }))).toBe(false)
  })

  it('T3: a grant that was begun just after disable, by the client as it was, comes to nothing', async () => {
    const { clients, serving, clock } = await opened()
    await clients.add(acme)
    const { asOf } = serving.rules
    const disabled = clients.disable('acme')
    clock.advance(400)
    await disabled
    const begun = { client: 'acme', subject: 's', begunAt: clock.now() }
    expect(serving.rules.hasEnded({ ...begun, asOf })).toBe(true)
    expect(serving.rules.hasEnded({ ...begun, asOf: serving.rules.asOf })).toBe(false)
  })

  it('may be enabled again; what was revoked stays so', async () => {
    const { clients, people, serving, clock } = await opened()
    await clients.add(acme)
    const before = token(clock.now(), { client: 'acme' })
    await clients.disable('acme')
    clock.advance(2000)
    await clients.enable('acme')
    await serving.timers.fire()
    expect((await people.findClient('acme'))?.disabled).toBe(false)
    expect(serving.rules.isRevoked(before)).toBe(true)
  })

  it('have two secrets during a rotation, until the old one ends', async () => {
    const { clients, people, clock, serving } = await opened()
    const { secret: old } = await clients.add(acme)
    const fresh = await clients.rotateSecret('acme', DAY)
    await serving.timers.fire()
    const fits = async (secret: string) =>
      (await people.findClient('acme'))!.secretHashes.some((hash) => verifySecret(secret, hash))
    expect(await Promise.all([fits(old!), fits(fresh)])).toEqual([true, true])
    expect(await clients.show('acme')).toMatchObject({ validSecrets: 2, oldSecretEndsAt: clock.now() + DAY })
    clock.advance(DAY - 1)
    expect(await fits(old!)).toBe(true)
    clock.advance(1)
    expect(await Promise.all([fits(old!), fits(fresh)])).toEqual([false, true])
    expect(await clients.show('acme')).toMatchObject({ validSecrets: 1, oldSecretEndsAt: undefined })
  })

  it('have never more than two: a third must wait, or end both at once', async () => {
    const { clients, people } = await opened()
    await clients.add(acme)
    await clients.rotateSecret('acme', DAY)
    expect(await problems(clients.rotateSecret('acme', DAY))).toEqual([
      expect.stringContaining('Two secrets are valid until 2026-01-16T00:00:00.000Z'),
    ])
    const only = await clients.rotateSecret('acme', 0)
    const { secretHashes } = (await people.findClient('acme'))!
    expect(secretHashes).toHaveLength(1)
    expect(verifySecret(only, secretHashes[0]!)).toBe(true)
  })

  it('take changes by several at once, none lost', async () => {
    const { clients, people, serving } = await opened()
    await clients.add(acme)
    await Promise.all([clients.disable('acme'), clients.rotateSecret('acme', DAY)])
    await serving.timers.fire()
    expect(await people.findClient('acme')).toMatchObject({
      disabled: true,
      secretHashes: [expect.any(String), expect.any(String)],
    })
  })

  it('C11.5.1 are listed with those of the configuration, in one order, page by page', async () => {
    const { clients } = await opened()
    for (const id of ['gamma', 'alpha']) await clients.add({ ...acme, id })
    const first = await clients.list({ after: undefined, limit: 2 })
    expect(first.items.map(({ key, source }) => `${key} ${source}`)).toEqual([
      'alpha store',
      'fixed configuration',
    ])
    const rest = await clients.list({ after: first.next, limit: 2 })
    expect([rest.items.map(({ key }) => key), rest.next]).toEqual([['gamma'], undefined])
  })

  it('C11.5.1 that the configuration hides are removed; what they could still hold ends, and nothing else', async () => {
    const { clients, store, ended } = await opened()
    const hide = (disabled: boolean) =>
      store.create('directory_client', 'fixed', {
        value: { record: { ...acme, id: 'fixed', secrets: [], disabled }, ends: {} },
      })
    expect(await problems(clients.remove('fixed'))).toEqual([expect.stringContaining('edit it there')])
    await hide(true)
    await clients.remove('fixed')
    expect([await store.find('directory_client', 'fixed'), ended]).toEqual([undefined, []])
    expect((await clients.show('fixed')).source).toBe('configuration')
    await hide(false)
    await clients.remove('fixed')
    expect(ended).toContainEqual({ client: 'fixed' })
  })
})

describe('users of the store', () => {
  it('are found by name and subject, with the password that was given', async () => {
    const { users, people } = await opened()
    const { subject } = (await users.add({ ...ann, password: PASSWORD })).record
    const found = await people.findUserByName('ann')
    expect(found).toMatchObject({ subject, customers: ['fixed'] })
    expect(await new Hasher().verify(PASSWORD, found?.passwordHash)).toBe(true)
    expect(await people.findUserBySubject(subject)).toEqual(found)
  })

  it('C11.5.8 never get the subject of a person whose data was erased, nor if the erasure begins while they are added', async () => {
    const { users, store } = await opened()
    const dora = { ...ann, username: 'dora', subject: 's-dora', password: PASSWORD }
    const refused = [expect.stringContaining('whose data was erased')]
    const create = store.create.bind(store)
    store.create = async (kind, key, entry) => {
      if (kind === USER) await closeSubject('s-dora', store)
      return create(kind, key, entry)
    }
    expect(await problems(users.add(dora))).toEqual(refused)
    store.create = create
    expect(await problems(users.add({ ...dora, username: 'eve' }))).toEqual(refused)
    expect([await store.list(USER), await store.list(SUBJECT)]).toEqual([[], []])
    await users.add({ ...dora, subject: 's-another' })
    expect(await store.find(USER, 'dora')).toBeDefined()
  })

  it('may be those of a client of the store', async () => {
    const { clients, users, people } = await opened()
    await clients.add(acme)
    await users.add({ ...ann, customers: ['acme'], password: PASSWORD })
    expect((await people.findUserByName('ann'))?.customers).toEqual(['acme'])
  })

  it('are refused with every problem that the configuration would tell, and with a short password', async () => {
    const { users } = await opened()
    expect(
      await problems(
        users.add({ ...ann, customers: ['no'], access: { ACME: 'Raeder' }, password: PASSWORD }),
      ),
    ).toEqual([
      'customers.0 names no client of the directory: "no"',
      'access.ACME names no role of the directory: "Raeder"',
    ])
    expect(await problems(users.add({ ...ann, password: 'short' }))).toEqual([
      expect.stringContaining('of 12 to 1024 characters'),
    ])
    expect(await problems(users.add({ ...ann, username: 'fixed', password: PASSWORD }))).toHaveLength(1)
  })

  it('have a subject of their own, and a name: neither is given twice', async () => {
    const { users, store } = await opened()
    await users.add({ ...ann, subject: 's-ann', password: PASSWORD })
    for (const subject of ['s-ann', 's-fixed'])
      expect(await problems(users.add({ ...ann, username: 'bob', subject, password: PASSWORD }))).toEqual([
        `Subject "${subject}" belongs to another user.`,
      ])
    for (const subject of ['s-other', 's-ann'])
      expect(await problems(users.add({ ...ann, subject, password: PASSWORD }))).toEqual([
        'There is a user "ann" already.',
      ])
    const subjects = await store.list(SUBJECT)
    expect(subjects.map(({ key }) => key)).toEqual(['s-ann'])
  })

  it('are added where an attempt was broken off in between', async () => {
    const { users, people, store } = await opened()
    await store.create(SUBJECT, 's-ann', { value: { username: 'ann' } })
    await users.add({ ...ann, subject: 's-ann', password: PASSWORD })
    expect((await people.findUserBySubject('s-ann'))?.username).toBe('ann')
  })

  it('are out everywhere when disable resolves: tokens by rule, logins before and after all have heard', async () => {
    const { users, people, serving, ended, clock } = await opened()
    const { subject } = (await users.add({ ...ann, password: PASSWORD })).record
    await people.findUserByName('ann')
    await users.disable('ann')
    expect((await people.findUserByName('ann'))?.disabled).toBe(true)
    expect(serving.rules.isRevoked(token(clock.now(), { subject }))).toBe(true)
    // Before and after the change.
    expect(ended).toEqual([{ subject }, { subject }])
    await users.enable('ann')
    await serving.timers.fire()
    expect((await people.findUserByName('ann'))?.disabled).toBe(false)
  })

  it('log in by the new password only, and again everywhere, once it is set', async () => {
    const { users, people, serving, ended, clock } = await opened()
    const { subject } = (await users.add({ ...ann, password: PASSWORD })).record
    await people.findUserByName('ann')
    await users.setPassword('ann', 'another horse battery')
    const hash = (await people.findUserByName('ann'))?.passwordHash
    const hasher = new Hasher()
    expect(await hasher.verify(PASSWORD, hash)).toBe(false)
    expect(await hasher.verify('another horse battery', hash)).toBe(true)
    expect(serving.rules.isRevoked(token(clock.now(), { subject }))).toBe(true)
    // Before and after the change.
    expect(ended).toEqual([{ subject }, { subject }])
  })

  it('setPassword leaves those of the configuration alone', async () => {
    const { users, ended } = await opened()
    expect(await problems(users.setPassword('fixed', PASSWORD))).toEqual([
      expect.stringContaining('edit it there'),
    ])
    expect(ended).toEqual([])
  })

  it.each(['disable', 'enable', 'setPassword'] as const)('%s knows who is there', async (verb) => {
    const { users, ended } = await opened()
    expect(await problems(users[verb]('nobody', PASSWORD))).toEqual(['There is no user "nobody".'])
    expect(ended).toEqual([])
  })

  it('C11.5.1 disable marks one of the configuration by name and subject; enable also finds the mark alone', async () => {
    const { users, store, ended } = await opened()
    await users.disable('fixed')
    expect(ended).toEqual([{ subject: 's-fixed' }, { subject: 's-fixed' }])
    expect(await store.list('disabled_user')).toMatchObject([
      { key: 'fixed', value: { subjects: ['s-fixed'] } },
    ])
    await store.create('disabled_user', 'gone', { value: { name: 'gone', subjects: ['s-gone'], since: 0 } })
    expect(await users.show('gone')).toMatchObject({ source: 'mark', record: { subject: 's-gone' } })
    await users.enable('gone')
    expect(await problems(users.enable('gone'))).toEqual(['There is no user "gone".'])
  })

  it('C11.5.1 enable of one in the store ends its mark too, in every process before it answers', async () => {
    const { users, store, serving } = await opened()
    await users.add({ ...ann, customers: [], access: {}, password: PASSWORD })
    await store.create('disabled_user', 'ann', { value: { name: 'ann', subjects: [], since: 0 } })
    const marks = await DisabledMarks.open({ store, feed: serving.feed })
    const isDisabled = async () =>
      (await marks.current()).user({ username: 'ann', subject: '', disabled: false }).disabled
    expect(await isDisabled()).toBe(true)
    await users.enable('ann')
    expect(await isDisabled()).toBe(false)
  })

  it('C11.5.1 disable says where people are changed who are not in the store', async () => {
    const { usersBeside } = await opened()
    expect(await problems(usersBeside.disable('nobody'))).toEqual([
      expect.stringMatching(/^There is no user "nobody"\. .*own system.*`postern revoke --subject`/),
    ])
  })

  it('C11.5.1 that the configuration hides are removed; a subject of its own ends, one of the configuration does not', async () => {
    const { users, store, ended } = await opened()
    const hide = async (subject: string) => {
      await store.create('directory_subject', subject, { value: { username: 'fixed' } })
      const record = { ...ann, username: 'fixed', subject, password: HASH }
      await store.create('directory_user', 'fixed', { value: { record } })
    }
    expect(await problems(users.remove('fixed'))).toEqual([expect.stringContaining('edit it there')])
    await hide('s-fixed')
    await users.remove('fixed')
    expect([await store.find('directory_user', 'fixed'), ended]).toEqual([undefined, []])
    await hide('s-own')
    await users.remove('fixed')
    expect(ended).toContainEqual({ subject: 's-own' })
    expect(await store.list('directory_subject')).toEqual([])
    expect((await users.show('fixed')).source).toBe('configuration')
  })

  it('C11.5.1 are listed with those of the configuration, by prefix', async () => {
    const { users } = await opened()
    await users.add({ ...ann, password: PASSWORD })
    await users.add({ ...ann, username: 'änn', password: PASSWORD })
    const keys = async (prefix?: string) =>
      (await users.list({ after: undefined, limit: 9, ...(prefix !== undefined && { prefix }) })).items.map(
        ({ key, source }) => `${key} ${source}`,
      )
    expect(await keys()).toEqual(['ann store', 'fixed configuration', 'änn store'])
    expect(await keys('ä')).toEqual(['änn store'])
  })
})
