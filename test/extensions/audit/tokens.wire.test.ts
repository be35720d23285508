import { describe, expect, it } from 'vitest'
import {
  ALICE,
  auditedPeople,
  authorizeUrl,
  HERE,
  onOf,
  SCOPE,
  sharedPeople,
  wholeTrail,
} from '../../support/audited-people.ts'
import { withoutAudit } from '../../support/held-audit.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { postForm, type OAuthAnswer } from '../../support/oauth.ts'
import { Person } from '../../support/person.ts'

/** Of the tests that leave it as it was. */
const atOne = sharedPeople()

const isUnavailable = ({ json, status, headers }: OAuthAnswer): void => {
  expect([status, json.error]).toEqual([503, 'temporarily_unavailable'])
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
}

describe('C12.3 tokens', () => {
  it('C12.3 token.issued tells client, user, grant, scope and family; a refresh continues the family', async () => {
    const people = await atOne()
    const first = await people.byPassword()
    await people.byRefresh(first.json.refresh_token)
    const [issued, refreshed] = await people.recorded('token.issued', 2)
    expect(issued).toMatchObject({
      outcome: 'success',
      requestId: first.headers.get('x-request-id'),
      actor: { kind: 'user', subject: ALICE, client: 'acme-books' },
      on: { kind: 'token', id: expect.any(String), family: expect.any(String), business: 'ACME' },
      grant: { grant: 'password', scope: SCOPE, target: 'target:b/ACME' },
      values: { 'actor.address': HERE },
    })
    expect(refreshed).toMatchObject({
      grant: { grant: 'refresh_token' },
      on: { family: onOf(issued).family },
    })
  })

  it('C12.3 token.refused tells the fault, and what was typed as a personal value', async () => {
    const people = await atOne()
    await people.byPassword('wrong', 'Alice Typed This')
    await people.byPassword('wrong')
    await postForm(people.service, '/connect/token', { params: {}, client: 'nobody', secret: 'guessed' })
    const [unknown, wrong, stranger] = await people.recorded('token.refused', 3)
    expect(unknown).toMatchObject({
      outcome: 'refused',
      reason: 'invalid_grant',
      actor: { kind: 'client', client: 'acme-books' },
      grant: { grant: 'password' },
      values: { 'actor.claimed': 'Alice Typed This', 'actor.address': HERE },
    })
    expect(JSON.stringify({ ...unknown, values: undefined })).not.toContain('Typed')
    expect(wrong).toMatchObject({ on: { subject: ALICE } })
    expect(stranger).toMatchObject({
      reason: 'invalid_client',
      actor: { kind: 'anonymous' },
      values: { 'actor.claimed': 'nobody' },
    })
    expect(wholeTrail(people.service)).not.toContain('guessed')
  })

  it('C12.3 token.refused names no public client as one that has proven who it is', async () => {
    const people = await atOne()
    const params = { grant_type: 'refresh_token', refresh_token: 'invented', client_id: 'pocketbooks' }
    await postForm(people.service, '/connect/token', { params, headers: { Authorization: '' } })
    expect(await people.recorded('token.refused')).toMatchObject([
      { reason: 'invalid_grant', actor: { kind: 'anonymous' }, on: { client: 'pocketbooks' } },
    ])
  })

  it('C12.3 token.revoked names what was revoked; a revocation that is refused says so', async () => {
    const people = await atOne()
    const { json } = await people.byPassword()
    await people.revoke(json.access_token, 'ledgerline')
    await people.revoke(json.access_token)
    await people.revoke(json.refresh_token)
    const [issued] = await people.recorded('token.issued')
    const { family, id } = onOf(issued)
    expect(await people.recorded('token.revoked', 3)).toMatchObject([
      { outcome: 'refused', reason: 'invalid_grant', actor: { kind: 'client', client: 'ledgerline' } },
      { outcome: 'success', actor: { client: 'acme-books' }, on: { kind: 'token', id, subject: ALICE } },
      { outcome: 'success', on: { kind: 'token', family, subject: ALICE } },
    ])
  })

  it('C12.3 token.replayed tells the rule that ended the family', async () => {
    const clock = movableClock()
    const people = await auditedPeople({ clock })
    const { json } = await people.byPassword()
    await people.byRefresh(json.refresh_token)
    clock.advance(31_000)
    expect((await people.byRefresh(json.refresh_token)).json.error).toBe('invalid_grant')
    const [issued] = await people.recorded('token.issued', 2)
    const { family } = onOf(issued)
    expect(await people.recorded('token.replayed')).toMatchObject([
      {
        outcome: 'refused',
        reason: 'invalid_grant',
        actor: { kind: 'client', client: 'acme-books' },
        on: { kind: 'token', family, subject: ALICE },
        change: { rule: { family }, ended: { families: 1 } },
      },
    ])
  })

  it('C12.3 code.issued and code.replayed name the family of their tokens', async () => {
    const people = await auditedPeople()
    const { code } = await people.walk()
    expect((await people.byCode(code)).status).toBe(200)
    expect((await people.byCode(code)).json.error).toBe('invalid_grant')
    const [issued] = await people.recorded('code.issued')
    expect(issued).toMatchObject({
      outcome: 'success',
      actor: { kind: 'user', subject: ALICE },
      on: { kind: 'code', client: 'ledgerline', business: 'ACME' },
      grant: { scope: SCOPE, target: 'target:b/ACME' },
    })
    const { family } = onOf(issued)
    expect(await people.recorded('token.issued')).toMatchObject([
      { on: { family }, grant: { grant: 'authorization_code' } },
    ])
    expect(await people.recorded('code.replayed')).toMatchObject([
      { on: { kind: 'code', family, subject: ALICE }, change: { rule: { family } } },
    ])
  })

  it('C12.3 authorization.refused is recorded by redirect and by page', async () => {
    const people = await atOne()
    const person = new Person(people.service.authUrl)
    await person.open(authorizeUrl({ scope: 'unheard-of' }))
    await person.open(authorizeUrl({ redirect_uri: 'https://elsewhere.test/' }))
    const asked = await people.asked()
    await asked.person.submit(asked.page, { decision: 'deny' })
    expect(await people.recorded('authorization.refused', 3)).toMatchObject([
      { reason: 'invalid_scope', actor: { kind: 'anonymous' }, on: { client: 'ledgerline' } },
      { reason: 'authorize_bad_redirect', actor: { kind: 'anonymous' }, on: { client: 'ledgerline' } },
      { reason: 'access_denied', actor: { kind: 'user', subject: ALICE }, on: { client: 'ledgerline' } },
    ])
  })

  it('C12.1.5 refusals are recorded singly ten times a minute where nobody has proven who asks', async () => {
    const people = await auditedPeople()
    const guess = (secret: string) => postForm(people.service, '/connect/token', { params: {}, secret })
    for (let count = 0; count < 14; count += 1) await guess(`wrong-${count}`)
    expect(await people.recorded('token.refused', 10)).toHaveLength(10)
  })
})

describe('C12.1.4 tokens while nothing can be recorded', () => {
  it('C12.1.4 none is given, nothing is stored, and reads go on', async () => {
    const people = await auditedPeople()
    const { service } = people
    const { json } = await people.byPassword()
    await withoutAudit(service, async () => {
      isUnavailable(await people.byPassword())
      expect(await people.userinfo(json.access_token)).toBe(200)
    })
    expect(await service.world.store.list('refresh_family')).toHaveLength(1)
    expect((await people.byPassword()).status).toBe(200)
  })

  it('C12.1.4 a refresh token is not used up, however long it takes', async () => {
    const clock = movableClock()
    const people = await auditedPeople({ clock })
    const { json } = await people.byPassword()
    isUnavailable(await withoutAudit(people.service, () => people.byRefresh(json.refresh_token)))
    // Far beyond the grace of a token that was used.
    clock.advance(600_000)
    const again = await people.byRefresh(json.refresh_token)
    expect(again.status).toBe(200)
    expect((await people.byRefresh(again.json.refresh_token)).status).toBe(200)
  })

  it('C12.1.4 a code is not used up, and its second use is noticed all the same', async () => {
    const people = await auditedPeople()
    const { code } = await people.walk()
    isUnavailable(await withoutAudit(people.service, () => people.byCode(code)))
    const good = await people.byCode(code)
    expect(good.status).toBe(200)
    expect((await people.byCode(code)).json.error).toBe('invalid_grant')
    const { json } = await people.byRefresh(good.json.refresh_token, 'ledgerline')
    expect(json.error).toBe('invalid_grant')
  })

  it('C12.1.4 a revocation takes effect', async () => {
    const people = await atOne()
    const { json } = await people.byPassword()
    const { status } = await withoutAudit(people.service, () => people.revoke(json.refresh_token))
    expect([status, await people.userinfo(json.access_token)]).toEqual([200, 401])
  })

  it('C12.1.4 what was recorded and then not given is told by a second record', async () => {
    const people = await atOne()
    const { store } = people.service.world
    const create = store.create.bind(store)
    Object.assign(store, { create: () => Promise.reject(new Error('the disk is gone')) })
    expect((await people.byPassword()).status).toBe(500)
    Object.assign(store, { create })
    const [said, undone] = await people.recorded('token.issued', 2)
    expect(said).toMatchObject({ outcome: 'success' })
    expect(undone).toMatchObject({ outcome: 'failed', reason: 'internal', intent: said?.['seq'] })
  })
})
